import type {} from "postgraphile";
import { sql } from "postgraphile/@dataplan/pg/pg-sql2";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      RowPresencePlugin: true;
    }
  }
}

/**
 * Whether a joined row is there, core reads from any cheap column that is never null, and so asks callers for a privilege
 * that their query does not need. Whoever may read a table may read its key.
 */
export const RowPresencePlugin: GraphileConfig.Plugin = {
  name: "RowPresencePlugin",
  description: "A row is there when its key is",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { attribute }) {
        attribute.restrictedAccess = true;
      },
      pgCodecs_PgCodec(_info, { pgClass, pgCodec }) {
        const key = pgClass?.getConstraints().find(({ contype }) => contype === "p");
        const column = key?.getAttributes()?.[0]?.attname;
        if (column) pgCodec.notNullExpression = (row) => sql`(${row}.${sql.identifier(column)} is not null)::text`;
      },
    },
  },
};
