"use strict";
for (const button of document.querySelectorAll(".copy")) {
  const commands = button.nextElementSibling;
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
const watch = new ResizeObserver((boxes) => {
  for (const { target } of boxes) target.classList.toggle("over", target.scrollWidth > target.clientWidth);
});
for (const box of document.querySelectorAll(".scroll")) watch.observe(box);
