import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../engine/database/database.ts";
import type { Condition } from "./health.ts";

type Services = Pick<Condition, "schemaFault" | "isSchemaAwaited" | "leftOut" | "shortage" | "acceptsWork"> & {
  readonly database: Database;
};

/** How long the database may take to say that it is well. */
const PATIENCE_MS = 2_000;

/** How the service is, as the database knows it, and whoever wires the rest. */
export function conditionOf({ database, ...others }: Services): Condition {
  return {
    databaseFault() {
      const { status, reason } = database.state();
      return status === "up" ? null : (reason ?? "not connected yet");
    },
    async askDatabase() {
      const answer = database.asOwner((client) => client.query("select"));
      const silence = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
        throw new Error(`no answer for ${PATIENCE_MS} ms`);
      });
      await Promise.race([answer, silence]);
    },
    replicas: () => database.replicas(),
    ...others,
  };
}
