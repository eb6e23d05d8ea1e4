"""What lies in a folder or a table, and what is wrong with it."""

import os

import numpy as np
import pytest
from PIL import Image

from mcrise import InputError
from mcrise.batch.datasets import Example, gtsrb, open_dataset, truth_of


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path)


def official_gtsrb(root):
    for split, folder, table in (
        ("train", "Final_Training/Images/00002", "GT-00002.csv"),
        ("test", "Final_Test/Images", "GT-final_test.csv"),
    ):
        for n in range(2):
            picture(root / folder / f"{split}{n}.ppm")
        rows = "".join(f"{split}{n}.ppm;8;8;0;0;7;7;{n + 1}\n" for n in range(2))
        head = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"
        (root / folder / table).write_text(head + rows)


def test_gtsrb_in_its_official_layout(tmp_path):
    official_gtsrb(tmp_path / "GTSRB")
    for where in (tmp_path, tmp_path / "GTSRB"):
        found = open_dataset(where)
        assert [(one.name, one.label) for one in found] == [
            ("Final_Test/Images/test0.ppm", "1"),
            ("Final_Test/Images/test1.ppm", "2"),
        ]
        assert [one.label for one in open_dataset(where, "train")] == ["1", "2"]
    assert gtsrb(tmp_path)[0].path == str(tmp_path / "GTSRB/Final_Test/Images/test0.ppm")


def test_gtsrb_has_boxes_and_its_training_tracks_are_groups(tmp_path):
    """Tests have no tracks; the region of interest names its last row and column."""
    root = tmp_path / "GTSRB" / "Final_Training" / "Images"
    for sign in ("00002", "00003"):
        for name in ("00000_00001", "00000_00029", "00001_00000"):
            picture(root / sign / f"{name}.ppm")
        rows = "".join(f"{name}.ppm;8;9;1;2;5;6;{int(sign)}\n" for name in (
            "00000_00001", "00000_00029", "00001_00000"))  # fmt: skip
        head = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"
        (root / sign / f"GT-{sign}.csv").write_text(head + rows)
    found = open_dataset(tmp_path, "train")
    assert [one.group for one in found] == [
        "00002/00000", "00002/00000", "00002/00001", "00003/00000", "00003/00000", "00003/00001",
    ]  # fmt: skip
    assert found[0].box == (2, 1, 7, 6)  # top, left, bottom, right
    official_gtsrb(tmp_path / "other" / "GTSRB")
    assert open_dataset(tmp_path / "other")[0].group is None
    assert open_dataset(tmp_path / "other")[0].box == (0, 0, 8, 8)


def test_a_csv_may_name_groups_boxes_and_masks(tmp_path):
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png")
    picture(tmp_path / "where" / "a.png")
    table = tmp_path / "list.csv"
    table.write_text(
        "image,x1,y1,x2,y2,clip,mask,label\na.png,1,2,3,4,c7,where/a.png,stop\nb.png,,,,,c7,,\n"
    )
    first, second = open_dataset(table, group="clip")
    assert (first.label, first.group, first.box) == ("stop", "c7", (2, 1, 4, 3))
    assert first.mask == str(tmp_path / "where" / "a.png")
    assert (second.label, second.group, second.box, second.mask) == (None, "c7", None, None)
    assert open_dataset(table)[0].group is None
    with pytest.raises(InputError, match=r"the column 'track', but .* has only path, x1"):
        open_dataset(table, group="track")
    with pytest.raises(InputError, match="is no table"):
        open_dataset(tmp_path, group="clip")
    table.write_text("image,x1,y1,x2,y2\na.png,1,2,3,left\n")
    with pytest.raises(InputError, match="the box 2, 1, left, 3, but four numbers"):
        open_dataset(table)


def test_a_folder_of_masks_has_the_names_of_the_images(tmp_path):
    picture(tmp_path / "images" / "stop" / "a.jpg")
    picture(tmp_path / "images" / "stop" / "b.jpg")
    picture(tmp_path / "masks" / "stop" / "a.png")
    first, second = open_dataset(tmp_path / "images", masks=tmp_path / "masks")
    assert first.mask == str(tmp_path / "masks" / "stop" / "a.png")
    assert second.mask is None
    with pytest.raises(InputError, match=r"no mask for any .* as in stop/a\.png"):
        open_dataset(tmp_path / "images", masks=tmp_path / "gone")


@pytest.mark.parametrize("place", ["GTSRB/Final_Test", "GTSRB", "."])
def test_gtsrb_with_its_test_table_where_archives_unpack_it(tmp_path, place):
    official_gtsrb(tmp_path / "GTSRB")
    before = open_dataset(tmp_path)
    table = tmp_path / "GTSRB/Final_Test/Images/GT-final_test.csv"
    table.rename(tmp_path / place / "GT-final_test.csv")
    assert open_dataset(tmp_path) == before
    assert open_dataset(tmp_path / "GTSRB") == before


def test_folders_of_classes_and_the_split_below_them(tmp_path):
    picture(tmp_path / "val" / "n01440764" / "b.JPEG")
    picture(tmp_path / "val" / "n01443537" / "a.png")
    picture(tmp_path / "train" / "n01440764" / "c.png")
    (tmp_path / "val" / "notes.txt").write_text("not an image")
    found = open_dataset(tmp_path, "val")
    assert [(one.name, one.label) for one in found] == [
        ("n01440764/b.JPEG", "n01440764"),
        ("n01443537/a.png", "n01443537"),
    ]
    assert len(open_dataset(tmp_path)) == 3  # no subfolder `test`: all of it
    with pytest.raises(InputError, match="has no subfolder vall"):
        open_dataset(tmp_path, "vall")


def test_linked_folders_are_read_once(tmp_path):
    picture(tmp_path / "elsewhere" / "a.png")
    classes = tmp_path / "classes"
    classes.mkdir()
    for name in ("stop", "again"):
        (classes / name).symlink_to(tmp_path / "elsewhere")
    (classes / "loop").symlink_to(classes)
    assert [(one.name, one.label) for one in open_dataset(classes)] == [("again/a.png", "again")]


def test_any_folder_has_images_without_labels(tmp_path):
    picture(tmp_path / "a.png")
    assert [one.label for one in open_dataset(tmp_path)] == [None]


def test_runs_studies_and_hidden_files_are_not_images_of_a_folder(tmp_path):
    for name in ("a.png", ".a.png", "a.png.mcrise/maps.png", "study/examples.png", "b/c.png",
                 "a.png.match/match.png", "elsewhere/maps.png", "elsewhere/more/curves.png",
                 "audited/images/a.png"):  # fmt: skip
        picture(tmp_path / name)
    (tmp_path / "study" / "study.json").write_text("{}")
    (tmp_path / "audited" / "audit.json").write_text("{}")
    (tmp_path / "elsewhere" / "run.npz").write_bytes(b"")
    (tmp_path / "run.npz").write_bytes(b"")  # beside a user's own pictures
    assert [one.name for one in open_dataset(tmp_path)] == ["a.png", "b/c.png"]


def test_a_name_that_is_not_utf8_can_be_written_down(tmp_path):
    picture(tmp_path / "a.png")
    os.rename(os.fsencode(tmp_path / "a.png"), os.fsencode(tmp_path) + b"/caf\xe9.png")
    (found,) = open_dataset(tmp_path)
    assert found.name == "caf\\xe9.png"
    assert os.path.exists(found.path)


@pytest.mark.parametrize("head", ["path,label\n", ""])
def test_a_csv_of_path_and_label(tmp_path, head):
    picture(tmp_path / "sub" / "a.png")
    picture(tmp_path / "b.png")
    (tmp_path / "list.csv").write_text(f"{head}sub/a.png,stop\nb.png\n")
    found = open_dataset(tmp_path / "list.csv")
    assert [(one.name, one.label) for one in found] == [("b.png", None), ("sub/a.png", "stop")]
    assert found[1].path == str(tmp_path / "sub" / "a.png")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("gone.png,1\n", "lists gone.png, but there is no such file"),
        ("path,label\n", "lists no images"),
        ("a.png,1\na.png,2\n", "lists a.png twice"),
        (b"\xff\xfe\x00\x81", "is not a table"),
    ],
)
def test_a_bad_csv_is_refused_in_one_sentence(tmp_path, content, said):
    picture(tmp_path / "a.png")
    table = tmp_path / "list.csv"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=said):
        open_dataset(table)


def test_empty_and_missing_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no images"):
        open_dataset(tmp_path)
    with pytest.raises(InputError, match="There is no"):
        open_dataset(tmp_path / "gone")
    with pytest.raises(InputError, match="is empty: give one"):
        open_dataset("")
    (tmp_path / "GTSRB" / "Final_Test").mkdir(parents=True)
    with pytest.raises(InputError, match="holds no GTSRB test tables"):
        open_dataset(tmp_path)
    with pytest.raises(InputError, match="only 'train' and 'test'"):
        open_dataset(tmp_path, "validation")


def test_a_label_is_a_name_the_first_word_of_one_or_an_index():
    labels = ("n01440764 tench", "n01443537 goldfish", "stop")
    known = {"stop": 2, "n01443537": 1, "n01440764 tench": 0, "2": 2, "N01440764_Tench": 0}
    for label, index in known.items():
        assert truth_of(Example("x", "x", label), labels) == index
    assert truth_of(Example("x", "x", "7"), None) == 7
    assert truth_of(Example("x", "x", None), labels) is None
    assert truth_of(Example("x", "x", "holiday", sure=False), labels) is None
    with pytest.raises(InputError, match="'cat', but the model has no such class"):
        truth_of(Example("x", "x", "cat"), labels)
    with pytest.raises(InputError, match="from 0 to 2"):
        truth_of(Example("x", "x", "3"), labels)
    with pytest.raises(InputError, match="its labels with --labels"):
        truth_of(Example("x", "x", "cat"), None)


def test_a_label_is_not_guessed():
    labels = ("20 km/h", "30 km/h", "no entry", "no passing")
    with pytest.raises(InputError, match="no such class"):  # there are two of them
        truth_of(Example("x", "x", "no"), labels)
    with pytest.raises(InputError, match="from 0 to 3"):  # an index, not a speed
        truth_of(Example("x", "x", "20"), labels)
    assert truth_of(Example("x", "x", "2023", sure=False), None) is None  # a year's photographs
