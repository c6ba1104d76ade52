import { GraphQLNonNull, isNonNullType } from "grafast/graphql";
import type { Introspection, PgAttribute, PgClass, PgConstraint } from "graphile-build-pg/pg-introspection";
import { memoizePerObject } from "#runtime";
import { withNonNullItems, withNullableItems } from "./graphql-types.ts";
import { hasChildren, mayHoldNulls, relationOf } from "./table.ts";

declare global {
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** RLS may hide rows from some callers. */
      mayHideRows?: boolean;
    }
    interface PgCodecRelationExtensions {
      /** Some rows may reference a missing row. */
      mayBeUnresolved?: boolean;
    }
  }
  namespace GraphileBuild {
    interface PgCodecAttributeTags {
      /** The array has no null items, which SQL cannot declare. */
      notNullItems: true;
    }
    interface PgCodecRelationTags {
      nullable: true;
    }
  }
}

export const NonNullPlugin: GraphileConfig.Plugin = {
  name: "NonNullPlugin",
  description: "Collections, their items and the targets of required foreign keys are non-null",
  gather: {
    hooks: {
      async pgTables_PgResourceOptions({ helpers }, { serviceName, pgClass, resourceOptions }) {
        const { introspection } = await helpers.pgIntrospection.getService(serviceName);
        resourceOptions.extensions = {
          ...resourceOptions.extensions,
          mayHideRows: mayHideRows(pgClass, introspection),
        };
      },
      // A domain's NOT NULL is checked for stored values only; a query can return null of any domain.
      pgCodecs_PgCodec(_info, { pgCodec }) {
        if (pgCodec.domainOfCodec) pgCodec.notNull = false;
      },
      pgCodecs_attribute(_info, { pgClass, pgAttribute, attribute }) {
        if (attribute.notNull && mayHoldNull(pgClass, pgAttribute)) attribute.notNull = false;
      },
      pgRelations_relation(_info, { pgConstraint, relation }) {
        if (mayBeUnresolved(pgConstraint)) relation.extensions = { ...relation.extensions, mayBeUnresolved: true };
      },
    },
  },
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, _build, { scope }) {
        const {
          isPgFieldConnection,
          isPgFieldSimpleCollection,
          isPgSingleRelationField,
          pgRelationDetails,
          pgFieldAttribute,
          pgFieldResource,
        } = scope;
        const isList = isPgFieldConnection || isPgFieldSimpleCollection;
        const isThere = isPgSingleRelationField && pgRelationDetails && alwaysRefersToVisibleRow(pgRelationDetails);
        if (isList && pgFieldResource && mayHoldNulls(pgFieldResource)) {
          const type = withNullableItems(field.type);
          return { ...field, type: isNonNullType(type) ? type : new GraphQLNonNull(type) };
        }
        if ((isList || isThere) && !isNonNullType(field.type))
          return { ...field, type: new GraphQLNonNull(field.type) };
        return pgFieldAttribute?.extensions?.tags?.notNullItems
          ? { ...field, type: withNonNullItems(field.type) }
          : field;
      },
    },
  },
};

/**
 * A null in a non-null field nulls its parent, up to the whole response. So the relation is non-null only where no policy can hide the
 * referenced row and Postgres has validated the foreign key.
 */
function alwaysRefersToVisibleRow(details: GraphileBuild.PgRelationsPluginRelationDetails): boolean {
  const relation = relationOf(details);
  if (!relation || relation.isReferencee) return false;
  if (relation.extensions?.mayBeUnresolved || relation.extensions?.tags?.nullable) return false;
  return (
    !relation.remoteResource.extensions?.mayHideRows &&
    relation.localAttributes.every((column) => details.codec.attributes[column]?.notNull)
  );
}

/** True for a key that is `not valid` or `not enforced`, or whose table has children, which do not inherit it. */
function mayBeUnresolved(key: PgConstraint): boolean {
  const { convalidated, conenforced = true } = key;
  return !convalidated || !conenforced || hasChildren(key.getClass());
}

/** True if NOT NULL comes from a domain outside of a table, is not validated, or does not apply to the table's children. */
function mayHoldNull(pgClass: PgClass, { attnum, attnotnull }: PgAttribute): boolean {
  if (pgClass.relkind !== "r" && pgClass.relkind !== "p") return !attnotnull;
  const constraint = pgClass.getConstraints().find(({ contype, conkey }) => contype === "n" && conkey?.[0] === attnum);
  if (!constraint) return false;
  return !constraint.convalidated || (constraint.connoinherit === true && hasChildren(pgClass));
}

function mayHideRows({ _id, relkind, relrowsecurity }: PgClass, introspection: Introspection): boolean {
  if (relkind !== "r" && relkind !== "p") return true;
  if (!relrowsecurity) return false;
  const reading = selectPoliciesByTable(introspection).get(_id) ?? [];
  return reading.some(({ polpermissive }) => !polpermissive) || !reading.some(showsAllRowsToPublic);
}

const selectPoliciesByTable = memoizePerObject(({ policies }: Introspection) =>
  Map.groupBy(
    policies.filter(({ polcmd }) => polcmd === "r" || polcmd === "*"),
    ({ polrelid }) => polrelid,
  ),
);

/** `using (true)` to public. `polqual` is a node tree: a constant of type 16, boolean, whose value is true. */
function showsAllRowsToPublic({ polroles, polqual }: Introspection["policies"][number]): boolean {
  return (
    Boolean(polroles?.includes("0")) &&
    /^\{CONST :consttype 16 .*:constisnull false .*:constvalue 1 \[ 1 /.test(polqual ?? "")
  );
}
