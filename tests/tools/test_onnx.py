"""ONNX models on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hloforge
from hloforge.tools.main import cli

onnx = pytest.importorskip("onnx")


def test_sizes_of_a_dynamic_model_are_named_to_save_it(tmp_path: Path) -> None:
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negation", [x], [y])
    model, output = tmp_path / "model.onnx", tmp_path / "model.vmfb"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), model)
    refused = CliRunner().invoke(cli, ["compile", str(model), "-o", str(output)])
    assert refused.exit_code == 1
    assert "--shape" in refused.output
    done = CliRunner().invoke(cli, ["compile", str(model), "-o", str(output), "--shape", "x=2x3"])
    assert done.exit_code == 0, done.output
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(hloforge.load(output)(given), -given)
