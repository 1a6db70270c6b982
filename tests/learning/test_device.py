import pytest
import torch

from hilander.errors import SettingError
from hilander.learning.device import choose_device, one_thread, run_blocks


def test_a_device_that_does_not_exist_is_refused():
    for name in ("cuda:97", "abacus"):
        with pytest.raises(SettingError, match=f"device='{name}' is not usable here"):
            choose_device(name)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


def test_every_block_is_processed_once_by_a_single_torch_thread():
    n_threads, seen = torch.get_num_threads(), []
    blocks = [slice(start, start + 3) for start in range(0, 12, 3)]
    run_blocks(
        lambda rows: seen.append((rows, torch.get_num_threads())), blocks, choose_device("cpu")
    )
    assert sorted(rows.start for rows, _ in seen) == [0, 3, 6, 9]
    assert {threads for _, threads in seen} == {1}
    assert torch.get_num_threads() == n_threads


def test_the_number_of_threads_is_restored_after_an_error():
    n_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(ZeroDivisionError), one_thread():
            1 / (torch.get_num_threads() - 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
