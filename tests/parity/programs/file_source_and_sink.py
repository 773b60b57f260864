"""Lines from files, results into files."""

import glob
import os
import tempfile

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    folder = tempfile.mkdtemp()
    for name, text in (("one.txt", "b\na\n"), ("two.txt", "c\nä\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    output = os.path.join(folder, "output")
    sink = FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    lines.map(lambda line: line.upper() + "!", Types.STRING()).sink_to(sink)
    env.execute()
    for path in glob.glob(os.path.join(output, "*", "*")):
        with open(path, encoding="utf-8") as file:
            print(file.read(), end="")


if __name__ == "__main__":
    main()
