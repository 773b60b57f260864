"""The catalog API: what programs add without SQL is there for SQL, and the other way round."""

from __future__ import annotations

import pytest

from headwater.common import Configuration
from headwater.common.errors import SqlError
from headwater.table import DataTypes, EnvironmentSettings, TableEnvironment, udf
from headwater.table.catalog import CatalogBaseTable, CatalogDatabase, CatalogDescriptor, ObjectPath

ROW = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())])
PATH = ObjectPath.from_string("db.t")


@pytest.fixture
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = Configuration()
    options.set_string("type", "generic_in_memory")
    environment.create_catalog("mine", CatalogDescriptor.of("mine", options, "a comment"))
    environment.get_catalog("mine").create_database("db", CatalogDatabase.create_instance({"k": "v"}, "mine"), False)
    return environment


def test_a_table_of_the_catalog(environment: TableEnvironment) -> None:
    catalog = environment.get_catalog("mine")
    assert catalog.get_database("db").get_properties() == {"k": "v"}
    catalog.create_table(PATH, CatalogBaseTable.create_table(ROW, ["id"], {"connector": "print"}, "of tests"), False)
    found = catalog.get_table(PATH)
    assert (found.get_comment(), found.get_options()) == ("of tests", {"connector": "print"})
    schema = environment.from_path("mine.db.t").get_resolved_schema()
    assert schema.get_column_names() == ["id", "name"] == found.get_resolved_schema().get_column_names()
    assert [each.get_data_type().sql() for each in schema.get_columns()] == ["INT", "STRING"]
    assert schema.get_primary_key() is None and schema.get_watermark_specs() == []
    assert environment.from_path("mine.db.t").get_schema().get_field_names() == ["id", "name"]


def test_tables_are_renamed_replaced_and_dropped(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE mine.db.t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'x')")
    catalog = environment.get_catalog("mine")
    key = catalog.get_table(PATH).get_resolved_schema().get_primary_key()
    assert key is not None and key.get_columns() == ["id"]
    catalog.rename_table(PATH, "u", False)
    assert catalog.list_tables("db") == ["u"] and not catalog.table_exists(PATH)
    other = ObjectPath("db", "u")
    catalog.alter_table(other, CatalogBaseTable.create_table(ROW), False)
    assert catalog.get_table(other).get_options() == {}
    with pytest.raises(SqlError, match=r"table 'mine.db.u' exists"):
        catalog.create_table(other, CatalogBaseTable.create_table(ROW), False)
    catalog.create_table(other, CatalogBaseTable.create_table(ROW), True)
    catalog.drop_table(other, False)
    catalog.drop_table(other, True)
    with pytest.raises(SqlError, match=r"catalog 'mine' has no table 'db.u'; the database has nothing"):
        catalog.drop_table(other, False)


def test_functions_are_listed_and_dropped(environment: TableEnvironment) -> None:
    environment.create_temporary_system_function("twice", udf(lambda x: x, result_type="INT"))
    assert {"twice", "upper", "row_number"} <= set(environment.list_functions())
    assert not environment.drop_function("twice")  # a temporary one is not the catalog's


def test_a_path_has_two_parts() -> None:
    with pytest.raises(SqlError, match=r"it has two parts, database.name"):
        ObjectPath.from_string("t")
