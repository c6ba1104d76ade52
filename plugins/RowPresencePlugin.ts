import type {} from "postgraphile";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec, SchemaResource } from "./table.ts";

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
      init(_, { pgResources, allPgCodecs }) {
        const values = columnCodecs(allPgCodecs);
        const rows = Object.values(pgResources).filter(({ codec }) => !values.has(codec));
        for (const resource of rows) {
          if (mayBeAllNull(resource)) Object.assign(resource, { getNullCheckExpression: rowExistsExpression });
        }
        return _;
      },
    },
  },
};

/** The rows of such a type are read out of values and lists as well, where one of which all is null is the null it stood for. */
function columnCodecs(codecs: Iterable<Codec>): ReadonlySet<Codec> {
  const columns = [...codecs].flatMap(({ attributes }) => Object.values(attributes ?? {}));
  return new Set(columns.flatMap(({ codec }) => withInnerCodecs(codec)));
}

/** A type, and what it is a list of or a domain over. */
function withInnerCodecs(codec: Codec): Codec[] {
  const inner = codec.arrayOfCodec ?? codec.domainOfCodec;
  return inner ? [codec, ...withInnerCodecs(inner)] : [codec];
}

/** As the row of `max(price)` over nothing. Where one row at most is returned, or a list, it stands for none. */
function mayBeAllNull({ isUnique, isList, codec }: SchemaResource): boolean {
  const { attributes, notNullExpression } = codec as Codec;
  if (isUnique || isList || !attributes || notNullExpression) return false;
  return !Object.values(attributes).some(({ notNull }) => notNull);
}

/** Of a row that is joined and not there nothing is; core asks whether any column holds something. */
function rowExistsExpression(row: SQL): SQL {
  return sql`(${row} is distinct from null)::text`;
}
