import { expect, test } from "vitest";
import { BoundTables } from "../../../realtime/changes/bound-tables.ts";

const NEWS = { schema: "public", name: "news" };

test.each([
  { schema: "public", table: "news" },
  { schema: "public", table: null },
  { schema: null, table: "news" },
  { schema: null, table: null },
])(
  "a binding of the schema $schema and the table $table counts until it is removed as often as it was added",
  (binding) => {
    const tables = new BoundTables();
    expect(tables.has(NEWS)).toBe(false);
    tables.add([binding, binding]);
    tables.remove([binding]);
    expect(tables.has(NEWS)).toBe(true);
    expect(tables.has({ schema: "other", name: "notes" })).toBe(binding.schema === null && binding.table === null);
    tables.remove([binding]);
    expect(tables.has(NEWS)).toBe(false);
  },
);
