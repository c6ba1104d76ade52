import { compareWithSql } from "./compare-with-sql.ts";
import { NAMED_AS_OUR_SQL } from "./named-as-our-sql.ts";
import { PUBLIC_SCHEMAS } from "./public-schemas.ts";

const { backstage, dbos, django, graphileWorker, optuna, pgboss } = PUBLIC_SCHEMAS;
for (const schema of [backstage, dbos, django, graphileWorker, optuna, pgboss, NAMED_AS_OUR_SQL])
  compareWithSql(schema);
