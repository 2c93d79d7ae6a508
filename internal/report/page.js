"use strict";
for (const button of document.querySelectorAll(".copy")) {
  const commands = button.nextElementSibling.firstElementChild;
  button.hidden = false;
  button.onclick = async () => {
    getSelection().selectAllChildren(commands);
    try {
      await navigator.clipboard.writeText(commands.textContent);
    } catch {
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  };
}
const mark = (box) => {
  box.classList.toggle("over", box.scrollWidth > box.clientWidth + 1);
  box.classList.toggle("end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 1);
};
const watch = new ResizeObserver((boxes) => boxes.forEach(({ target }) => mark(target)));
for (const box of document.querySelectorAll(".scroll")) {
  watch.observe(box);
  box.onscroll = () => mark(box);
}
