package masks

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
)

// paired pairs pictures with the masks in dir. It returns the masks by picture, without dir.
func paired(dir string, pictures []string, whole bool) (map[string]string, error) {
	m := &masks{dir: dir, Pictures: Pictures{Len: len(pictures), Whole: whole, Open: func(i int) (*listing.Example, error) { return listing.File(pictures[i]), nil }}}
	files, err := m.pair()
	got := map[string]string{}
	for i, at := range files {
		got[pictures[i]], _ = filepath.Rel(dir, at)
	}
	return got, err
}

// Masks are found by the names of pictures in all layouts of folders. What is not clear is an error.
func TestPair(t *testing.T) {
	for name, tt := range map[string]struct {
		pictures, masks string
		want            string // masks in the order of pictures, or an error
		some            bool   // the pictures are not a whole folder
	}{
		"flat":                         {"im/a.jpg im/b.jpg", "a.png b.png", "a.png b.png", false},
		"same folders":                 {"im/x/a.jpg im/y/a.jpg", "x/a.png y/a.png", "x/a.png y/a.png", false},
		"folders of pictures only":     {"im/x/a.jpg im/y/b.jpg", "a.png b.png", "a.png b.png", false},
		"folders of masks only":        {"im/a.jpg im/b.jpg", "sub/a.png sub/b.png", "sub/a.png sub/b.png", false},
		"a folder of masks each":       {"im/a.jpg im/b.jpg", "x/a.png y/z/b.png", "x/a.png y/z/b.png", false},
		"one picture":                  {"im/a.jpg", "sub/a.png", "sub/a.png", true},
		"masks one level deeper":       {"im/x/a.jpg im/y/a.jpg", "sub/x/a.png sub/y/a.png", "sub/x/a.png sub/y/a.png", false},
		"folders of other names":       {"im/x/a.jpg im/y/b.jpg", "p/a.png q/b.png", "p/a.png q/b.png", false},
		"a mask beside a folder":       {"im/a.jpg im/x/a.jpg", "a.png x/a.png", "a.png x/a.png", false},
		"an ending":                    {"im/a.jpg im/ab.jpg", "a_mask.png ab_mask.png", "a_mask.png ab_mask.png", false},
		"an ending, in another order":  {"im/ab.jpg im/a.jpg", "a_mask.png ab_mask.png", "ab_mask.png a_mask.png", false},
		"an ending, of one picture":    {"im/a.jpg", "a_mask.png ab_mask.png aC_mask.png", "a_mask.png", true},
		"an ending behind a missing":   {"im/a.jpg im/b.jpg", "b_mask.png", "m: 1 of 2 pictures have no mask: im/a.jpg", false},
		"an ending in a folder":        {"im/a.jpg im/b.jpg", "sub/a_mask.png sub/b_mask.png", "sub/a_mask.png sub/b_mask.png", false},
		"an ending with a dot":         {"im/a.jpg im/b.jpg", "a.mask.png b.mask.png", "a.mask.png b.mask.png", false},
		"two endings":                  {"im/a.jpg im/b.jpg", "a_colour.png a_ids.png b_colour.png b_ids.png", "m: both m/a_ids.png and m/a_colour.png may be the mask of im/a.jpg: want a folder with one of the kinds", false},
		"numbers":                      {"im/1.jpg im/10.jpg", "1.png 10.png", "1.png 10.png", false},
		"numbers, one missing":         {"im/1.jpg im/10.jpg", "10.png", "m: 1 of 2 pictures have no mask: im/1.jpg", false},
		"numbers with an ending":       {"im/1.jpg im/10.jpg", "1_m.png 10_m.png", "1_m.png 10_m.png", false},
		"whole names":                  {"im/a.jpg im/b.png", "a.jpg.png b.png.png", "a.jpg.png b.png.png", false},
		"whole names of one stem":      {"im/a.jpg im/a.png", "a.jpg.png a.png.png", "a.jpg.png a.png.png", false},
		"dots":                         {"im/a.b.jpg im/a.c.jpg", "a.b.png a.c.npy", "a.b.png a.c.npy", false},
		"no extension":                 {"shard.tar/a shard.tar/b", "a.png b.png", "a.png b.png", true},
		"upper case":                   {"im/a.JPG im/b.JPEG", "a.PNG b.TiF", "a.PNG b.TiF", false},
		"other extensions":             {"im/a.jpg im/b.jpg im/c.jpg", "a.npy b.bmp c.gif", "a.npy b.bmp c.gif", false},
		"a picture twice":              {"im/a.jpg im/a.jpg", "a.png", "a.png a.png", true},
		"more masks than pictures":     {"im/a.jpg", "a.png b.png", "a.png", true},
		"a mask without a picture":     {"im/a.jpg", "a.png b.png", "m: 1 masks have no picture: m/b.png", false},
		"a picture without a mask":     {"im/a.jpg im/b.jpg", "a.png", "m: 1 of 2 pictures have no mask: im/b.jpg", false},
		"several of one stem":          {"im/a.jpg im/a.png", "a.png", "m/a.png: would be the mask of two pictures: im/a.jpg and im/a.png", false},
		"two masks":                    {"im/a.jpg", "a.png a.npy", "m/a.png: m/a.npy is a mask of the same picture", false},
		"two masks, by case":           {"im/a.jpg", "a.png a.PNG", "m/a.png: m/a.PNG is a mask of the same picture", false},
		"which folder":                 {"im/a.jpg im/b.jpg", "x/a.png y/a.png y/b.png", "im/a.jpg: both m/x/a.png and m/y/a.png may be its mask: want masks in folders with the names of those of the pictures", false},
		"another folder":               {"im/x/a.jpg im/y/b.jpg", "x/a.png z/b.png", "m: 1 of 2 pictures have no mask: im/y/b.jpg. m/z/b.png lies in another folder than im/y/b.jpg", false},
		"a format that changes":        {"im/a.jpg im/b.jpg", "a.png b.jpg", "m: 1 of 2 pictures have no mask: im/b.jpg. m/b.jpg does not keep the numbers of pixels: want .png .gif .bmp .tif .tiff .pgm .npy", false},
		"only formats that change":     {"im/a.jpg", "a.jpg", "m: a folder without masks (.png .gif .bmp .tif .tiff .pgm .npy)", false},
		"no masks":                     {"im/a.jpg", "README.md", "m: a folder without masks (.png .gif .bmp .tif .tiff .pgm .npy)", false},
		"masks that begin with others": {"im/a.jpg im/ab.jpg", "ab.png", "m: 1 of 2 pictures have no mask: im/a.jpg", false},
		"hidden files":                 {"im/.jpg im/a.jpg", ".png a.png d/.x.png", "m: 1 of 2 pictures have no mask: im/.jpg", false},
		"cityscapes":                   {"im/a_0_19_leftImg8bit.png im/b_0_20_leftImg8bit.png", "a_0_19_gtFine_labelIds.png b_0_20_gtFine_labelIds.png", "a_0_19_gtFine_labelIds.png b_0_20_gtFine_labelIds.png", false},
		"cityscapes, one city":         {"im/a/a_0_19_leftImg8bit.png im/a/a_0_20_leftImg8bit.png", "a/a_0_19_gtFine_labelIds.png a/a_0_20_gtFine_labelIds.png", "a/a_0_19_gtFine_labelIds.png a/a_0_20_gtFine_labelIds.png", false},
		"cityscapes, another city":     {"im/a_0_19_leftImg8bit.png im/a_0_20_leftImg8bit.png", "b_0_19_gtFine_labelIds.png b_0_20_gtFine_labelIds.png", "m: 2 of 2 pictures have no mask: im/a_0_19_leftImg8bit.png, im/a_0_20_leftImg8bit.png", false},
		"cityscapes, all kinds":        {"im/a_0_19_leftImg8bit.png im/a_0_20_leftImg8bit.png", "a_0_19_gtFine_color.png a_0_19_gtFine_labelIds.png a_0_20_gtFine_color.png a_0_20_gtFine_labelIds.png", "m: both m/a_0_19_gtFine_color.png and m/a_0_19_gtFine_labelIds.png may be the mask of im/a_0_19_leftImg8bit.png: want a folder with one of the kinds", false},
		"a prefix":                     {"im/img_1.jpg im/img_10.jpg im/img_11.jpg", "mask_1.png mask_10.png mask_11.png", "mask_1.png mask_10.png mask_11.png", false},
		"a prefix without a separator": {"im/img1.jpg im/img10.jpg", "label1.png label10.png", "label1.png label10.png", false},
		"a prefix of masks only":       {"im/1.jpg im/10.jpg", "mask_1.png mask_10.png", "mask_1.png mask_10.png", false},
		"a prefix, other numbers":      {"im/img_10.jpg im/img_11.jpg", "mask_20.png mask_21.png", "m: 2 of 2 pictures have no mask: im/img_10.jpg, im/img_11.jpg", false},
		"a prefix, one missing":        {"im/img_10.jpg im/img_11.jpg", "mask_10.png", "m: 2 of 2 pictures have no mask: im/img_10.jpg, im/img_11.jpg", false},
		"a prefix of other pictures":   {"im/train_1.jpg im/train_2.jpg", "val_1.png val_2.png", "m: 2 of 2 pictures have no mask: im/train_1.jpg, im/train_2.jpg", false},
		"numbers that all have":        {"im/s1_1.jpg im/s1_2.jpg", "s2_1_mask.png s2_2_mask.png", "m: 2 of 2 pictures have no mask: im/s1_1.jpg, im/s1_2.jpg", false},
		"numbers at the end":           {"im/1_0.jpg im/2_0.jpg", "1_1_mask.png 2_1_mask.png", "m: 2 of 2 pictures have no mask: im/1_0.jpg, im/2_0.jpg", false},
		"an ending for another":        {"im/1_sat.jpg im/12_sat.jpg", "1_mask.png 12_mask.png", "1_mask.png 12_mask.png", false},
		"an ending with a number":      {"im/21_training.tif im/22_training.tif", "21_manual1.gif 22_manual1.gif", "21_manual1.gif 22_manual1.gif", false},
		"ISIC":                         {"im/ISIC_01.jpg im/ISIC_12.jpg", "ISIC_01_segmentation.png ISIC_12_segmentation.png", "ISIC_01_segmentation.png ISIC_12_segmentation.png", false},
		"names that are endings":       {"im/_mask.jpg im/a.jpg", "_mask.png a_mask.png", "m: 1 of 2 pictures have no mask: im/a.jpg", false},
	} {
		f := newFolder(t)
		for _, mask := range strings.Fields(tt.masks) {
			f.write("m/"+mask, nil)
		}
		got, err := paired(filepath.Join(f.dir, "m"), strings.Fields(tt.pictures), !tt.some)
		if err != nil {
			if printed := strings.ReplaceAll(err.Error(), f.dir+"/", ""); printed != tt.want {
				t.Errorf("%s: error %s, want %s", name, printed, tt.want)
			}
			continue
		}
		var list []string
		for _, p := range strings.Fields(tt.pictures) {
			list = append(list, got[p])
		}
		if strings.Join(list, " ") != tt.want {
			t.Errorf("%s: %s, want %s", name, list, tt.want)
		}
	}
}

// Folders of masks are read through links, as folders of pictures are. A link without an end is an error.
func TestLinkedFolders(t *testing.T) {
	f := newFolder(t)
	f.write("elsewhere/x/a.png", nil)
	if err := os.Symlink(f.at("elsewhere/x"), f.at("m/x")); err != nil {
		t.Fatal(err)
	}
	if got, err := paired(f.at("m"), []string{"im/x/a.jpg"}, true); err != nil || got["im/x/a.jpg"] != "x/a.png" {
		t.Errorf("%v, %v", got, err)
	}
	if err := os.Symlink(f.at("m"), f.at("m/again")); err != nil {
		t.Fatal(err)
	}
	if _, err := paired(f.at("m"), []string{"im/x/a.jpg"}, true); err == nil || !strings.HasSuffix(err.Error(), "m/again: a link to a folder that it is in") {
		t.Errorf("error %v", err)
	}
}

// FuzzPair: whatever the names are, each picture gets a mask with a name that begins with its own, and no two pictures
// the same.
func FuzzPair(f *testing.F) {
	f.Add("im/a.jpg im/b.jpg", "sub/a.png sub/b.png", true)
	f.Add("im/a.jpg im/ab.jpg", "a_mask.png ab_mask.png", true)
	f.Add("im/x/1.jpg im/y/1.jpg", "p/x/1.npy p/y/1.PNG", false)
	f.Add("a.b.c d/.png /", "a.b.png .png d/.x.png", false)
	files := newFolder(f)
	f.Fuzz(func(t *testing.T, pictures, masks string, whole bool) {
		dir := filepath.Join(files.dir, "m")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		os.Mkdir(dir, 0o777)
		for i, mask := range strings.Fields(masks) {
			if at := filepath.Join(dir, mask); i < 20 && filepath.IsLocal(mask) {
				os.MkdirAll(filepath.Dir(at), 0o777) // some names are not possible
				os.WriteFile(at, nil, 0o666)
			}
		}
		names := strings.Fields(pictures)
		if len(names) == 0 {
			return
		}
		reliability.Heap(t, 100*(len(pictures)+len(masks)), func() {
			got, err := paired(dir, names, whole)
			if err != nil {
				return
			}
			if n := len(slices.Compact(slices.Sorted(maps.Values(got)))); n != len(got) {
				t.Errorf("%d masks for %d pictures: %v", n, len(got), got)
			}
			for picture, mask := range got {
				if !strings.HasPrefix(base(mask), base(stem(picture))) {
					t.Errorf("%q for %q", mask, picture)
				}
			}
		})
	})
}
