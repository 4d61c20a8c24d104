import pytest
import torch

from retable.fedlocal.images import augment, network_input


def test_pixels_are_normalised_and_pooled():
    images = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    images[0, 0, :2, :2] = torch.tensor([[0, 255], [255, 255]])
    full = network_input(images, 4)
    assert full[0, 0, 0, 1].item() == pytest.approx((1 - 0.4914) / 0.2470, rel=1e-6)
    assert full[0, 2, 3, 3].item() == pytest.approx(-0.4465 / 0.2616, rel=1e-6)
    pooled = network_input(images, 2)
    assert pooled.shape == (1, 3, 2, 2)
    assert pooled[0, 0, 0, 0].item() == pytest.approx((0.75 - 0.4914) / 0.2470, rel=1e-6)


def test_augmented_images_are_flipped_crops_with_a_black_border():
    generator = torch.Generator().manual_seed(0)
    image = torch.arange(1, 37, dtype=torch.uint8).reshape(1, 1, 6, 6).expand(200, 3, 6, 6)
    augmented = augment(image, generator, padding=2)
    assert augmented.shape == image.shape
    assert augmented.dtype == torch.uint8
    padded = torch.nn.functional.pad(image[0, 0], (2,) * 4)
    crops = {
        tuple(view[i : i + 6, j : j + 6].flatten().tolist())
        for view in (padded, torch.nn.functional.pad(image[0, 0].flip(-1), (2,) * 4))
        for i in range(5)
        for j in range(5)
    }
    found = {tuple(one[0].flatten().tolist()) for one in augmented}
    assert found <= crops
    assert len(found) > 40
    assert (augmented[:, 0] == augmented[:, 2]).all()


def test_the_generator_decides_the_augmentation():
    images = torch.randint(0, 256, (9, 3, 8, 8), dtype=torch.uint8)
    one, same, other = (augment(images, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_bad_input():
    with pytest.raises(ValueError, match=r"images has dtype torch\.float32; it must be uint8"):
        network_input(torch.zeros(1, 3, 4, 4), 2)
    with pytest.raises(ValueError, match="side is 3; it must divide the images' 4 pixels"):
        network_input(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), 3)
