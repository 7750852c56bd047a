"""Execution plans of MSCCL++: judged as the executor runs them; nothing of MSCCL++ is needed.

from asyncsim.frontends import mscclpp

plan = mscclpp.load_plan("allreduce.json")
print(mscclpp.judge(mscclpp.Launches((plan, plan))).verdict)
"""

from asyncsim.frontends.mscclpp.judging import Judged, judge
from asyncsim.frontends.mscclpp.launch import Launches
from asyncsim.frontends.mscclpp.plan import Plan
from asyncsim.frontends.mscclpp.reading import load_plan, parse_plan

__all__ = ["Judged", "Launches", "Plan", "judge", "load_plan", "parse_plan"]
