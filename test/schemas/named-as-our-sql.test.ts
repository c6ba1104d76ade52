import { compareWithSql } from "./compare-with-sql.ts";
import { NAMED_AS_OUR_SQL } from "./named-as-our-sql.ts";

compareWithSql(NAMED_AS_OUR_SQL);
