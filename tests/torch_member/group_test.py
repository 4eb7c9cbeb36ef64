# SPDX-License-Identifier: Apache-2.0
"""group_test.py NODE PARAMETER_SERVER - a C program in a group of unmodified processes of torch.distributed.rpc."""
import os
import runpy
import select
import signal
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "tools"))
from cases import contains, environment, equal, main  # pylint: disable=wrong-import-position
from ports import free_port  # pylint: disable=wrong-import-position

NODE, SERVER = map(os.path.abspath, sys.argv[1:3])
EXAMPLE = os.path.join(HERE, "../../examples/torch_member")
ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


class Fork:
    """A program in Python, in a fork of this process, which has imported torch for all: that takes seconds."""

    def __init__(self, path, *args):
        theirs, ours = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(theirs[0], 0)
            os.dup2(ours[1], 1)
            os.closerange(3, 1024)  # also the other processes' pipes, which end when they are closed
            run_forked(path, *args)
        os.close(theirs[0])
        os.close(ours[1])
        self.stdin, self.stdout = os.fdopen(theirs[1], "w"), os.fdopen(ours[0])
        self.ended = os.pidfd_open(self.pid)
        self.status = None

    def send_signal(self, number):
        signal.pidfd_send_signal(self.ended, number)

    def kill(self):
        if self.status is None:
            self.send_signal(signal.SIGKILL)

    def wait(self, limit_s=60):
        if self.status is None:
            if not select.select([self.ended], [], [], limit_s)[0]:
                raise TimeoutError(f"the process has not ended in {limit_s} s")
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.ended)
        return self.status


def run_forked(path, *args):
    """In the child. Does not return."""
    status = 1
    sys.stdin, sys.stdout, sys.argv = open(0, encoding="utf-8", closefd=False), open(1, "w", encoding="utf-8", closefd=False), [path, *args]
    try:
        runpy.run_path(path, run_name="__main__")
        status = 0
    except SystemExit as e:
        status = e.code
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)


class Process:
    """A program that answers each line of its stdin by one of its stdout."""

    def __init__(self, process):
        self.process = process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text):
        self.tell(text)
        return self.line()

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(60), 0, "exit status")


def started(*args, env):
    return Process(subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env))


def static_process(name, rank, url, world_size):
    """It says nothing before all have joined."""
    return Process(Fork(os.path.join(HERE, "torch_process.py"), name, str(rank), url, str(world_size)))


def torch_process(name, rank, url):
    p = Process(Fork(os.path.join(HERE, "torch_process.py"), name, str(rank), url))
    equal(p.line(), "up", f"what {name} says")
    return p


def node(name, url, rank=None, protocol="torch"):
    more = {"RANK": str(rank)} if rank is not None else {}
    return started(NODE, env=environment(TENREC_WORKER__GROUP_PROTOCOL=protocol, TENREC_WORKER__NAME=name, TENREC_INIT_METHOD=url, **more))


def new_url():
    return f"tcp://127.0.0.1:{free_port()}"


def member_calls_torch():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        equal(c0.ask("infos"), "infos w0-0 c0-1", "members")
        equal(w0.ask("names()"), "['c0', 'w0']", "torch's members")
        equal(c0.ask(f"call w0 {ADD}|t:1 t:2 3"), "value tensor(2: 7 7)", "an operator")
        equal(c0.ask("call w0 operator.add|2 3"), "value 5", "a function of Python")
        equal(c0.ask("call w0 builtins.sorted|i:3,1,2"), "value [1, 2, 3]", "a list")
        equal(c0.ask("call w0 torch.ones|2"), "value tensor(2: 1 1)", "a tensor")
        equal(c0.ask("call w0 builtins.str|None"), "value 'None'", "None")
        equal(c0.ask("call w0 __torch__.scripted|t:1 3"), "value tensor(2: 4 4)", "TorchScript")
        contains(c0.ask("call w0 operator.add|a 3"), "error EREMOTE On WorkerInfo(id=0, name=w0):\\nTypeError")
        contains(c0.ask("call w0 no.such|1"), "error EREMOTE")
        contains(c0.ask("call w0 aten::nothing(Tensor self) -> Tensor|t:1"), "error EREMOTE")
        contains(c0.ask(f"call w0 {ADD}|t:1 t:2"), "takes 3 arguments, defaults included, got 2")
        contains(c0.ask("call w0 os.getcwdb|"), "value '")
        contains(c0.ask("call w0 builtins.object|"), "error ")
        contains(c0.ask("call w7 operator.add|2 3"), "error EPEER_UNKNOWN torch's group has no worker 'w7'")
        equal(c0.ask("leave"), "ok", "leave")
        equal(w0.ask("names()"), "['w0']", "torch's members")
        contains(c0.ask("call w0 operator.add|2 3"), "error ESHUTDOWN")
        c0.end()
        w0.end()


def member_serves_torch():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url, 7) as c0:
        equal(c0.ask("join"), "ok", "join")
        equal(c0.ask("infos"), "infos w0-0 c0-7", "members")
        equal(w0.ask("call('c0', torch.add, torch.ones(2), torch.ones(2))"), "tensor([2., 2.])", "an operator")
        equal(w0.ask("call('c0', operator.add, torch.ones(2), torch.ones(2))"), "tensor([2., 2.])", "a function")
        equal(w0.ask("rpc.rpc_sync('c0', scripted, (torch.ones(2), 3))"), "[tensor([1., 1.]), 3]", "TorchScript")
        equal(w0.ask("call('c0', operator.pos, {'a': [1, 2.5, None, True, 'x', b'y', 2**40, torch.ones(1)]})"),
              "{'a': [1, 2.5, None, True, 'x', b'y', 1099511627776, tensor([1.])]}", "values")
        equal(w0.ask("call('c0', operator.pos, torch.ones(1 << 20)).sum().item()"), "1048576.0", "a large tensor")
        equal(w0.ask("call('c0', operator.pos, torch.nn.Parameter(torch.ones(2)))"), "tensor([1., 1.])", "a parameter")
        equal(w0.ask("call('c0', operator.pos, torch.ones(2, 3).size())"), "[2, 3]", "a size")
        equal(w0.ask("[list(call('c0', operator.pos, m.state_dict())) == list(m.state_dict()) for m in [torch.nn.BatchNorm1d(1)]]"),
              "[True]", "a state_dict")
        equal(w0.ask("[m.load_state_dict(call('c0', operator.pos, m.state_dict())) for m in [torch.nn.Linear(2, 1)]]"),
              "[<All keys matched successfully>]", "a state_dict that goes back")
        contains(w0.ask("call('c0', operator.neg, 1)"), "RuntimeError On WorkerInfo(id=7, name=c0): EINVAL: this function")
        contains(w0.ask("call('c0', operator.mul, 1, 2)"), "has no function '_operator.mul'")
        contains(w0.ask("call('c0', operator.pos, 2**80)"), "an integer of more than 64 bits")
        contains(w0.ask("call('c0', operator.pos, object())"), "EUNSUPPORTED: pickle at byte")
        contains(w0.ask("call('c0', eval, '1')"), "has no function 'builtins.eval'")
        contains(w0.ask("rpc.rpc_sync('c0', operator.pos, (1,), {'k': 2})"), "no keyword arguments")
        equal(w0.ask("call('c0', operator.pos, 1)"), "1", "a call after those")
        equal(c0.ask("leave"), "ok", "leave")
        w0.end()


def member_keeps_values_for_torch():
    url = new_url()
    with torch_process("w0", 0, url) as w0, torch_process("w1", 1, url) as w1, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        w0.ask("keep('r', remote('c0', operator.pos, torch.ones(2)))")
        equal(w0.ask("kept['r'].to_here()"), "tensor([1., 1.])", "to_here")
        equal(w0.ask("wait_for_refs(num_pending_users=0)"), "{'num_pending_users': 0}", "confirmed")
        equal(w0.ask("kept['r'].confirmed_by_owner(), kept['r'].owner_name()"), "(True, 'c0')", "the reference")
        equal(w0.ask("call('c0', fetch, kept['r'])"), "tensor([1., 1.])", "passed to the owner")
        equal(w0.ask("call('w1', fetch, kept['r'])"), "tensor([1., 1.])", "passed to a third worker")
        equal(w0.ask("call('w1', keep, 'r', kept['r'])"), "None", "kept by a third worker")
        equal(w0.ask("drop('r')"), "None", "drop")
        equal(w1.ask("kept['r'].to_here()"), "tensor([1., 1.])", "after the first has dropped it")
        equal(w1.ask("call('c0', fetch, kept['r'])"), "tensor([1., 1.])", "passed to the owner by the third")
        equal(w1.ask("call('c0', operator.pos, kept['r']).to_here()"), "tensor([1., 1.])", "sent back")
        equal(w1.ask("drop('r')"), "None", "drop")
        equal(w0.ask("remote('c0', torch.add, torch.ones(2), torch.ones(2)).to_here()"), "tensor([2., 2.])", "an operator")
        equal(w0.ask("remote('c0', scripted, torch.ones(2), 3).to_here()"), "[tensor([1., 1.]), 3]", "TorchScript")
        contains(w0.ask("remote('c0', operator.neg, 1).to_here()"), "this function always fails")
        contains(w0.ask("remote('c0', operator.mul, 1, 2).to_here()"), "has no function '_operator.mul'")
        contains(w0.ask("remote('c0', operator.pos, object()).to_here()"), "EUNSUPPORTED: pickle at byte")
        equal(w0.ask("wait_for_refs(num_pending_users=0)"), "{'num_pending_users': 0}", "confirmed, though they failed")
        equal(c0.ask("leave"), "ok", "leave")
        c0.end()
        w1.end()
        w0.end()


def member_is_the_owner_of_objects_with_methods():
    url = new_url()
    with torch_process("w0", 0, url) as w0, torch_process("w1", 1, url) as w1, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        w0.ask("keep('c', remote('c0', Counter, 5))")
        equal(w0.ask("kept['c'].rpc_sync().add(2)"), "7", "rpc_sync")
        equal(w0.ask("kept['c'].rpc_async().add(3).wait()"), "10", "rpc_async")
        equal(w0.ask("kept['c'].remote().add(1).to_here()"), "11", "remote")
        w0.ask("call('w1', keep, 'c', kept['c'])")
        equal(w1.ask("kept['c'].rpc_sync().add(4)"), "15", "by a third worker")
        contains(w0.ask("kept['c'].to_here()"), "EUNSUPPORTED")
        contains(w0.ask("kept['c'].rpc_sync().nothing()"), "AttributeError")
        contains(w0.ask("kept['c'].rpc_sync().add('x')"), "expected an integer")
        equal(w0.ask("drop('c')"), "None", "drop")
        equal(w1.ask("kept['c'].rpc_sync().add(0)"), "15", "after the first has dropped it")
        equal(w1.ask("drop('c')"), "None", "drop")
        equal(c0.ask("freed 1"), "ok", "the last drop frees it")
        equal(c0.ask("leave"), "ok", "leave")
        c0.end()
        w1.end()
        w0.end()


def member_refers_to_values_of_torch():
    url = new_url()
    with torch_process("w0", 0, url) as w0, torch_process("w1", 1, url) as w1, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        equal(c0.ask("remote w0 torch.ones|2"), "ok", "a function of Python")
        equal(c0.ask("here 0"), "value tensor(2: 1 1)", "to_here")
        equal(c0.ask(f"remote w0 {ADD}|t:1 t:2 3"), "ok", "an operator")
        equal(c0.ask("here 1"), "value tensor(2: 7 7)", "to_here")
        equal(c0.ask("remote w0 __torch__.scripted -> Tensor|t:1 3"), "ok", "TorchScript")
        equal(c0.ask("here 2"), "value tensor(2: 4 4)", "to_here")
        equal(w0.ask("wait_for_refs(num_owner_rrefs=3)"), "{'num_owner_rrefs': 3}", "kept")
        equal(c0.ask("call w0 __main__.fetch|r:0"), "value tensor(2: 1 1)", "passed to the owner")
        for i, value in enumerate(("1 1", "7 7", "4 4")):
            equal(c0.ask(f"call w1 __main__.fetch|r:{i}"), f"value tensor(2: {value})", "passed to a third worker")
        equal(c0.ask("call w1 __main__.keep|a r:0"), "value None", "kept by a third worker")
        equal(c0.ask("remote w1 __main__.fetch|r:0"), "ok", "a creation with a reference")
        equal(c0.ask("here 3"), "value tensor(2: 1 1)", "to_here")
        contains(c0.ask("call w1 builtins.list|r:0"), "error EREMOTE")
        equal(c0.ask("remote w0 operator.add|a 3"), "ok", "a function that raises")
        contains(c0.ask("here 4"), "error EREMOTE On WorkerInfo(id=0, name=w0):\\nTypeError")
        contains(c0.ask("remote c0 operator.add|2 3"), "error EINVAL 'c0' is this worker")
        contains(c0.ask("remote w7 operator.add|2 3"), "error EPEER_UNKNOWN")
        equal(c0.ask("new 5"), "ok", "a value of this process")
        equal(c0.ask("call w1 __main__.fetch|r:5"), "value 5", "fetched by torch")
        for i in range(6):
            equal(c0.ask(f"drop {i}"), "ok", "drop")
        equal(w0.ask("wait_for_refs(num_owner_rrefs=1)"), "{'num_owner_rrefs': 1}", "the value that w1 refers to")
        equal(w1.ask("kept['a'].to_here()"), "tensor([1., 1.])", "after this process has dropped it")
        equal(w1.ask("drop('a')"), "None", "drop")
        equal(w0.ask("wait_for_refs(num_owner_rrefs=0)"), "{'num_owner_rrefs': 0}", "freed")
        equal(w1.ask("wait_for_refs(num_owner_rrefs=0)"), "{'num_owner_rrefs': 0}", "freed")
        equal(c0.ask("leave"), "ok", "leave")
        c0.end()
        w1.end()
        w0.end()


def member_leaves_with_references_of_torch():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        w0.ask("keep('c', remote('c0', Counter, 5))")
        equal(w0.ask("kept['c'].rpc_sync().add(2)"), "7", "a call")
        equal(c0.ask("remote w0 torch.ones|2"), "ok", "a reference of this process")
        equal(c0.ask("here 0"), "value tensor(2: 1 1)", "to_here")
        equal(c0.ask("limit 2000"), "ok", "a limit")
        equal(c0.ask("leave"), "ok", "leave, within the limit")
        equal(w0.ask("wait_for_refs(num_owner_rrefs=0)"), "{'num_owner_rrefs': 0}", "what this process referred to")
        contains(w0.ask("kept['c'].rpc_sync().add(2)"), "RuntimeError")
        equal(c0.ask("freed 1"), "ok", "freed")
        c0.end()
        w0.end()


def member_frees_what_a_killed_torch_process_refers_to():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        equal(c0.ask("join"), "ok", "join")
        with torch_process("w2", 2, url) as w2:
            w0.ask("keep('c', remote('c0', Counter, 1))")
            w0.ask("call('w2', keep, 'mine', kept['c'])")
            w2.ask("keep('c', remote('c0', Counter, 2))")
            equal(w2.ask("kept['c'].rpc_sync().add(1), kept['mine'].rpc_sync().add(1)"), "(3, 2)", "calls")
            equal(c0.ask("remote w2 torch.ones|2"), "ok", "a reference")
            equal(c0.ask("here 0"), "value tensor(2: 1 1)", "to_here")
        equal(c0.ask("freed 1"), "ok", "its own counter")
        contains(c0.ask("here 0"), "error E")
        contains(c0.ask("call w0 __main__.fetch|r:0"), "error E")
        equal(w0.ask("kept['c'].rpc_sync().add(1)"), "3", "the other's counter")
        equal(c0.ask("remote w0 torch.ones|2"), "ok", "a reference to the other's value")
        equal(c0.ask("here 1"), "value tensor(2: 1 1)", "to_here")
        w0.ask("drop('c')")
        equal(c0.ask("freed 2"), "ok", "the other's counter")
        equal(c0.ask("limit 10000"), "ok", "a limit")
        equal(c0.ask("leave"), "ok", "leave")
        c0.end()


def member_and_torch_refuse_a_static_group():
    url = new_url()
    with static_process("w0", 0, url, 3) as w0, static_process("w2", 2, url, 3) as w2, node("c1", url, 1) as c1:
        got = c1.ask("join")
        if got == "ok":  # it found the store before the first of torch's processes was counted
            got = c1.ask("present w0")
        contains(got, "error EGROUP torch's workers set up a static group in this store")
        contains(w0.line(), "down ValueError stoi")
        contains(w2.line(), "down ")


def member_that_is_alone_refuses_a_static_group():
    url = new_url()
    with node("c0", url, 0) as c0:
        equal(c0.ask("join"), "ok", "join, and serve the store")
        with static_process("w1", 1, url, 2) as w1:
            contains(c0.ask("present w1"), "error EGROUP torch's workers set up a static group in this store")
            contains(w1.line(), "down ")


def member_sees_torch_join_and_leave():
    url = new_url()
    with node("c0", url, 0) as c0:
        equal(c0.ask("join"), "ok", "join, and serve the store")
        with torch_process("w1", 1, url) as w1, torch_process("w2", 2, url) as w2:
            equal(c0.ask("infos"), "infos c0-0 w1-1 w2-2", "members")
            equal(w2.ask("names()"), "['c0', 'w1', 'w2']", "torch's members")
            equal(c0.ask("call w2 operator.add|2 3"), "value 5", "a call")
            equal(w2.ask("call('w1', operator.add, 2, 3)"), "5", "a call among torch's")
            w2.end()
            equal(c0.ask("gone w2"), "ok", "leaving")
            equal(c0.ask("infos"), "infos c0-0 w1-1", "members")
            with node("c1", url) as c1:
                equal(c1.ask("join"), "ok", "a second member joins")
                equal(c0.ask("infos"), "infos c0-0 w1-1 c1-2", "members")
                equal(w1.ask("call('c1', operator.pos, 4)"), "4", "a call to it")
                equal(c1.ask("leave"), "ok", "it leaves")
            w1.end()
            equal(c0.ask("gone w1"), "ok", "leaving")
        equal(c0.ask("leave"), "ok", "leave")
        c0.end()


def member_joins_while_torch_waits_for_its_token():
    """As torch's worker does that has to leave, whose client of the store answers nothing else meanwhile."""
    url = new_url()
    with torch_process("w0", 0, url) as w0, torch_process("w1", 1, url) as w1, node("c0", url, 5) as c0:
        w1.tell("rpc.api._get_current_rpc_agent().store.wait(['Token_for_c0_join'])")
        equal(c0.ask("join"), "ok", "join")
        equal(w1.line(), "None", "the end of its wait")
        equal(w1.ask("call('c0', operator.pos, 1)"), "1", "a call")
        equal(w0.ask("call('c0', operator.pos, 1)"), "1", "a call of the other")
        equal(c0.ask("leave"), "ok", "leave")


def member_goes_on_when_torch_is_killed():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        with torch_process("w2", 2, url) as w2:
            equal(c0.ask("join"), "ok", "join")
            equal(c0.ask("call w2 operator.add|2 3"), "value 5", "a call")
            w2.process.send_signal(signal.SIGKILL)
            w2.process.wait()
        contains(c0.ask("call w2 operator.add|2 3"), "error E")
        equal(c0.ask("call w0 operator.add|2 3"), "value 5", "a call to the other")
        equal(w0.ask("call('c0', operator.pos, 1)"), "1", "a call of the other")
        with node("c1", url) as c1:  # where torch's own worker could not join
            equal(c1.ask("join"), "ok", "a member joins past the dead one")
            equal(c1.ask("call w0 operator.add|2 3"), "value 5", "its call")
            equal(c1.ask("leave"), "ok", "it leaves")
        equal(c0.ask("leave"), "ok", "leave")


def member_goes_on_when_torch_dies_in_its_call():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        with torch_process("w2", 2, url) as w2:
            equal(c0.ask("join"), "ok", "join")
            contains(c0.ask(f"call w2 os.kill|{w2.process.pid} {signal.SIGKILL.value}"), "error EPEER_LOST")
        equal(c0.ask("call w0 operator.add|2 3"), "value 5", "a call to the other")
        equal(w0.ask("call('c0', operator.pos, 1)"), "1", "a call of the other")
        equal(c0.ask("leave"), "ok", "leave")


def member_goes_on_when_torch_stops_in_its_call():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0, torch_process("w2", 2, url):
        equal(c0.ask("join"), "ok", "join")
        equal(c0.ask("limit 1000"), "ok", "a limit")
        contains(c0.ask("call w2 torch_process.stop"), "error ETIMEDOUT no answer from 'w2'")
        equal(w0.ask("call('c0', operator.pos, 1)"), "1", "a call of the other")
        equal(c0.ask("leave"), "ok", "leave")
        equal(w0.ask("names()"), "['w0', 'w2']", "members as the other knows them")


def member_joins_when_torch_has_died_with_the_token():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c0", url) as c0:
        with torch_process("w2", 2, url) as w2:
            equal(w2.ask("rpc.api._get_current_rpc_agent().store.compare_set('RpcGroupManagementToken', '', "
                         "'Token_for_w2_leave')"), "b'Token_for_w2_leave'", "the token")
        equal(c0.ask("join"), "ok", "join")
        equal(c0.ask("call w0 operator.add|2 3"), "value 5", "a call")
        equal(c0.ask("leave"), "ok", "leave")


def member_that_is_killed_does_not_harm_the_others():
    url = new_url()
    with torch_process("w0", 0, url) as w0, node("c1", url) as c1:
        with node("c0", url) as c0:
            equal(c0.ask("join"), "ok", "join")
            equal(c1.ask("join"), "ok", "join")
        equal(w0.ask("call('c1', operator.pos, 1)"), "1", "a call")
        contains(w0.ask("call('c0', operator.pos, 1)"), "RuntimeError")
        equal(w0.ask("call('c1', operator.pos, 2)"), "2", "another call")
        equal(c1.ask("leave"), "ok", "leave")


def member_is_refused_in_a_static_group():
    url = new_url()
    program = ("import sys, torch.distributed as d; s = d.TCPStore('127.0.0.1', int(sys.argv[1]), None, True);"
               "d.PrefixStore('rpc_prefix_0', s).set('rpcIsStaticGroup', 'true'); print('up', flush=True); input()")
    with started(sys.executable, "-c", program, url.rpartition(":")[2], env=environment()) as store:
        equal(store.line(), "up", "the store")
        with node("c0", url, 1) as c0:
            contains(c0.ask("join"), "error EGROUP the group in this store is static")


def member_serves_the_trainers_of_the_example():
    build = os.path.dirname(os.path.dirname(SERVER))
    done = subprocess.run([os.path.join(EXAMPLE, "run"), build, str(free_port())], capture_output=True, text=True,
                          timeout=240, env=environment(PYTHON=sys.executable), check=False)
    equal((done.returncode, done.stdout), (0, "200 gradients, weights 1.00 -2.00 3.00 0.50\n"), done.stderr)


def torch_is_here():
    try:
        from torch.distributed.rpc import TensorPipeRpcBackendOptions  # pylint: disable=import-outside-toplevel,unused-import
    except (ImportError, AttributeError):
        return False
    return True


if torch_is_here():
    main(globals(), "member_")
else:
    print(f"1..1\nok 1 - member_calls_torch # SKIP {sys.executable} has no torch")
