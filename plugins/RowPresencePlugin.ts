import type {} from "postgraphile";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec, Resource } from "./table.ts";

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
  description: "A row is there when its key is, or whatever it holds where it has none",
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
  schema: {
    hooks: {
      init(_, { pgResources }) {
        for (const resource of Object.values(pgResources)) {
          if (mayBeAllNull(resource)) Object.assign(resource, { getNullCheckExpression: isThere });
        }
        return _;
      },
    },
  },
};

/** As the row of `max(price)` over nothing. Where one row at most is returned, it stands for none. */
function mayBeAllNull({ isUnique, codec }: Resource): boolean {
  const { attributes, notNullExpression } = codec as Codec;
  if (isUnique || !attributes || notNullExpression) return false;
  return !Object.values(attributes).some(({ notNull }) => notNull);
}

/** Of a row that is joined and not there nothing is; core asks whether any column holds something. */
function isThere(row: SQL): SQL {
  return sql`(${row} is distinct from null)::text`;
}
