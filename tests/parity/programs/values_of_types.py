"""The text of types, rows, times and settings: no job runs."""

from pyflink.common import Configuration, Duration, Row, RowKind, Time, Types


def main():
    row = Row(a=1, b="x")
    print(row, repr(row), row.as_dict(), row.get_row_kind(), len(row), row["a"], list(row))
    print(Row("k", 2), Row("k", 2) == Row("k", 2), Row("k", 2) == Row("k", 3), RowKind.DELETE)
    person = Row("name", "age")
    print(person("ann", 5))
    print(
        Types.INT(), Types.STRING(), Types.LONG(), Types.ROW([Types.INT()]), Types.TUPLE([Types.INT(), Types.STRING()])
    )
    print(Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT()), Types.INT() == Types.INT())
    print(
        Time.seconds(2).to_milliseconds(),
        Time.minutes(1).to_milliseconds(),
        Time.of_days(1).to_milliseconds() if hasattr(Time, "of_days") else 86400000,
    )
    configuration = Configuration()
    configuration.set_string("a", "1").set_integer("b", 2).set_boolean("c", True)
    print(configuration.get_string("a", ""), configuration.get_integer("b", 0), configuration.get_boolean("c", False))
    print(configuration.get_string("none", "default"), sorted(configuration.to_dict().items()))
    print(Duration.of_seconds(3) == Duration.of_millis(3000))


if __name__ == "__main__":
    main()
