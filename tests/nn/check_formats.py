#!/usr/bin/env python3
"""Text and binary files of networks against Google's protobuf library (pip install protobuf).

  check_formats.py TOOL FILE...     for each .prototxt: Google's parser and `dmath net print` read the same message;
                                    for each .caffemodel and .solverstate: Google's library writes the same bytes again

The messages are those of nn/proto/schema_*.def. FILEs are solvers if their name says so, else nets.
"""
import pathlib
import re
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

Field = descriptor_pb2.FieldDescriptorProto
LABELS = {"REPEATED": Field.LABEL_REPEATED, "PACKED": Field.LABEL_REPEATED, "REQUIRED": Field.LABEL_REQUIRED,
          "OPTIONAL": Field.LABEL_OPTIONAL}


def read_schema():
    file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe", syntax="proto2")
    messages, enums = {}, {}
    for path in sorted((pathlib.Path(__file__).resolve().parents[2] / "nn/proto").glob("schema_*.def")):
        text = path.read_text()
        for message, name, number, kind, label, of in re.findall(
                r"NN_FIELD\((\w+), (\w+), (\d+), (\w+), (\w+), (\w+), ", text):
            if message not in messages:
                messages[message] = file.message_type.add(name=message)
            field = messages[message].field.add(name=name, number=int(number), label=LABELS[label],
                                                type=getattr(Field, "TYPE_" + kind))
            if of != "NONE":  # values of enums share names: each enum stands in a message of its own
                field.type_name = f".caffe.{of}" if kind == "MESSAGE" else f".caffe.enum_{of}.Value"
            field.options.packed = label == "PACKED"
        for enum, name, number in re.findall(r"NN_ENUM\((\w+), (\w+), (-?\d+)\)", text):
            if enum not in enums:
                enums[enum] = file.message_type.add(name="enum_" + enum).enum_type.add(name="Value")
            enums[enum].value.add(name=name, number=int(number))
    for message in messages.values():
        for field in message.field:
            if not field.options.packed:
                field.ClearField("options")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe." + name))()


def main(tool, files):
    new, wrong = read_schema(), 0
    for path in map(pathlib.Path, files):
        if path.suffix == ".prototxt":
            kind = "SolverParameter" if "solver" in path.name else "NetParameter"
            run = subprocess.run([tool, "net", "print", path, kind], capture_output=True, text=True)
            same = run.returncode == 0 and text_format.Parse(path.read_text(), new(kind)) == text_format.Parse(run.stdout, new(kind))
        else:
            message = new("SolverState" if path.suffix == ".solverstate" else "NetParameter")
            message.ParseFromString(path.read_bytes())
            same = message.SerializeToString() == path.read_bytes()
        if not same:
            wrong += 1
            print(f"{path}: read otherwise by Google's library")
    print(f"{len(files) - wrong} of {len(files)} files are the same")
    return wrong != 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
