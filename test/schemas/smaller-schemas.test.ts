import { compareWithSql } from "./compare-with-sql.ts";
import { PUBLIC_SCHEMAS } from "./public-schemas.ts";

const { backstage, dbos, django, graphileWorker, optuna, pgboss } = PUBLIC_SCHEMAS;
for (const schema of [backstage, dbos, django, graphileWorker, optuna, pgboss]) compareWithSql(schema);
