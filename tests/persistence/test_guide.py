import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "model-files.md"


def test_the_code_of_the_guide_runs_from_top_to_bottom(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, GUIDE.name, "exec"), names)
