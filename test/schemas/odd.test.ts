import { compareWithSql } from "./compare-with-sql.ts";
import { schemaOf } from "./public-schemas.ts";

compareWithSql(schemaOf("odd.sql", { title: "A schema of odd names, types and keys", role: "authenticated" }));
