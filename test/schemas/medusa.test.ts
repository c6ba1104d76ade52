import { compareWithSql } from "./compare-with-sql.ts";
import { PUBLIC_SCHEMAS } from "./public-schemas.ts";

compareWithSql(PUBLIC_SCHEMAS.medusa);
