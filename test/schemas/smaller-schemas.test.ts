import { shareOf } from "../property-runs.ts";
import { compareWithSql } from "./compare-with-sql.ts";
import { NAMED_AS_OUR_SQL } from "./named-as-our-sql.ts";
import { PUBLIC_SCHEMAS } from "./public-schemas.ts";

const { backstage, dbos, django, graphileWorker, optuna, pgboss } = PUBLIC_SCHEMAS;
/** Half of those of others, unless all runs of property tests are made. */
const OTHERS = shareOf([backstage, dbos, django, graphileWorker, optuna, pgboss], 3);
for (const schema of [...OTHERS, NAMED_AS_OUR_SQL]) compareWithSql(schema);
