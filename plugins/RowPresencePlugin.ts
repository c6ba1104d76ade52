import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { Codec, SchemaResource } from "./table.ts";
import { wholeRow } from "./whole-row.ts";

/** Core checks any column that is not null, for which the caller may have no privilege. Roles that may read a table may read its key. */
export const RowPresencePlugin: GraphileConfig.Plugin = {
  name: "RowPresencePlugin",
  description: "A joined row exists when its key, or without a key any column, is not null",
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgClass, pgCodec }) {
        const key = pgClass?.getConstraints().find(({ contype }) => contype === "p");
        const column = key?.getAttributes()?.[0]?.attname;
        if (column)
          pgCodec.notNullExpression = (row) => sql`(${row}.${sql.identifier(column)} is not null)::pg_catalog.text`;
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

/** Codecs of columns: rows of these types are also read from values and lists, where a row of nulls stands for null. */
function columnCodecs(codecs: Iterable<Codec>): ReadonlySet<Codec> {
  const columns = [...codecs].flatMap(({ attributes }) => Object.values(attributes ?? {}));
  return new Set(columns.flatMap(({ codec }) => withInnerCodecs(codec)));
}

/** A codec and those that it is a list of or a domain over. */
function withInnerCodecs(codec: Codec): Codec[] {
  const inner = codec.arrayOfCodec ?? codec.domainOfCodec;
  return inner ? [codec, ...withInnerCodecs(inner)] : [codec];
}

/** True for rows such as that of `max(price)` over no rows. If a function returns one row or a list, such a row stands for no row. */
function mayBeAllNull({ isUnique, isList, codec }: SchemaResource): boolean {
  const { attributes, notNullExpression } = codec as Codec;
  if (isUnique || isList || !attributes || notNullExpression) return false;
  return !Object.values(attributes).some(({ notNull }) => notNull);
}

/** A missing joined row is null as a whole; core checks if any column is not null. */
function rowExistsExpression(row: SQL): SQL {
  return sql`(${wholeRow(row)} is distinct from null)::pg_catalog.text`;
}
