import type { GraphQLOutputType } from "grafast/graphql";
import type { OwnValue } from "#catalog";
import { memoizePerObject } from "#runtime";
import { makeExtension, type WithExtensions } from "./extension.ts";
import { functionOfField } from "./FunctionPrecedencePlugin.ts";
import {
  type Codec,
  columnOf,
  type FieldScope,
  keyOf,
  type PgRelation,
  type PgTable,
  relationOf,
  type SchemaResource,
} from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface PgCodecAttributeTags {
      /** Callers who may not select the column receive their own value by this function; if there is none, an error for this field alone. */
      personal: true | string;
    }
  }
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** A function's oid; `isSecurityDefiner`: the function runs with the privileges of its owner. */
      routine?: { readonly oid: string; readonly isSecurityDefiner: boolean };
    }
  }
}

export const VisibilityPlugin: GraphileConfig.Plugin = {
  name: "VisibilityPlugin",
  description: "Core's fields for tables and functions carry the privileges that they need",
  gather: {
    hooks: {
      pgProcedures_PgResourceOptions(_info, { pgProc, resourceOptions }) {
        const routine = { oid: pgProc._id, isSecurityDefiner: pgProc.prosecdef === true };
        resourceOptions.extensions = { ...resourceOptions.extensions, routine };
      },
    },
  },
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: (field, build, { scope }) =>
        withPersonal(
          withDefaultRule(field, () => ruleOfField(build, scope)),
          scope,
        ),
      GraphQLInterfaceType_fields_field: (field, build, { scope }) =>
        withDefaultRule(field, () => ruleOfField(build, scope)),
      GraphQLInputObjectType_fields_field: (field, _build, { scope }) =>
        withDefaultRule(field, () => ruleOfInputField(scope)),
    },
  },
};

const alwaysVisible: VisibilityRule = () => true;

/** The rules by which a role receives rows of each table's row type as values, from functions and from columns. */
const rowSourceRulesOf = memoizePerObject(
  ({ pgResources, allPgCodecs }: GraphileBuild.Build): ReadonlyMap<Codec, VisibilityRule[]> => {
    const sources = new Map<Codec, VisibilityRule[]>();
    const add = (codec: Codec, ruleFor: (table: TableIdentity) => VisibilityRule) => {
      for (const row of rowTypesWithin(codec)) {
        const rules = sources.get(row) ?? [];
        sources.set(row, rules);
        rules.push(ruleFor(tableIdentityOf(row)!));
      }
    };
    for (const resource of Object.values(pgResources) as SchemaResource[]) {
      if (resource.parameters) add(resource.codec, (table) => mayReadFunctionResult(resource, table));
    }
    for (const codec of allPgCodecs as ReadonlySet<Codec>) {
      const table = tableIdentityOf(codec);
      if (!table) continue;
      for (const [column, attribute] of Object.entries(codec.attributes!)) {
        add(attribute.codec, () => (role) => role.may("select", table, column));
      }
    }
    return sources;
  },
);

/** Fields of our own plugins have a rule already. */
function withDefaultRule<Field extends object>(field: Field, ruleOf: () => VisibilityRule | null): Field {
  if (visibilityRuleOf(field)) return field;
  const rule = ruleOf();
  return rule ? withVisibility(field, rule) : field;
}

/** Marks fields of columns with personal data, which are withheld one by one. */
function withPersonal<Field extends WithExtensions>(field: Field, { pgCodec, pgFieldAttribute }: FieldScope): Field {
  if (!pgFieldAttribute?.extensions?.tags?.personal) return field;
  const table = tableIdentityOf(pgCodec!);
  const maySee = visibilityRuleOf(field);
  if (!table || !maySee) return field;
  const column = columnOf(pgCodec!, pgFieldAttribute);
  const maySeeOwn: VisibilityRule = (role) => maySee(role) || role.ownValueOf(table, column) !== null;
  return withVisibility(personalColumn.add(field, { table, column }), maySeeOwn);
}

function ruleOfField(build: GraphileBuild.Build, scope: FieldScope): VisibilityRule | null {
  const { pgCodec, pgFieldAttribute, pgRelationDetails, pgRefDetails, pgFieldResource, pgFieldResourceUnique } = scope;
  if (pgFieldAttribute) return maySeeColumn(build, pgCodec!, columnOf(pgCodec!, pgFieldAttribute));
  if (pgRelationDetails) return mayFollowRelation(build, relationOf(pgRelationDetails)!);
  if (pgRefDetails) return allRules(relationsOf(pgRefDetails).map((relation) => mayFollowRelation(build, relation)));
  const called = functionOfField(build, scope);
  if (called) return mayExecute(called);
  return pgFieldResource ? mayUse("select", pgFieldResource, pgFieldResourceUnique?.attributes) : null;
}

/** A ref has one or more paths, each over several relations. */
function relationsOf({ registry, codec, ref }: GraphileBuild.PgRelationsPluginRefDetails): PgRelation[] {
  return ref.paths.flatMap((path) => {
    let from: Codec = codec;
    return path.map(({ relationName }) => {
      const relation = registry.pgRelations[from.name]![relationName]! as PgRelation;
      from = relation.remoteResource.codec;
      return relation;
    });
  });
}

/** The rule for a field of a row that a function takes as argument. */
function ruleOfInputField({ pgCodec, pgAttribute }: GraphileBuild.ScopeInputObjectFieldsField): VisibilityRule | null {
  const table = pgCodec && pgAttribute ? tableIdentityOf(pgCodec) : null;
  if (!table) return null;
  const column = columnOf(pgCodec!, pgAttribute!);
  const uses = ["select", "insert", "update"] as const;
  return (role) =>
    uses.some((privilege) => role.may(privilege, table, column)) ||
    !uses.some((privilege) => role.may(privilege, table));
}

type TableIdentity = { readonly schemaName: string; readonly name: string };
export type TableAction = "select" | "insert" | "update" | "delete";

/** The privileges of one role, or the union of several. */
export type RolePrivileges = {
  /** If `column` is absent, checks the privilege on the table or any of its columns. */
  may(privilege: TableAction, table: TableIdentity, column?: string): boolean;
  mayExecute(oid: string): boolean;
  /** The function with which a column is read only in the caller's own rows. */
  ownValueOf(table: TableIdentity, column: string): OwnValue | null;
};

export type VisibilityRule = (role: RolePrivileges) => boolean;

/** A column with personal data. */
type PersonalColumn = { readonly table: TableIdentity; readonly column: string };
const personalColumn = makeExtension<PersonalColumn>("personal");

/** Hides a field, argument or input field from roles for which the rule does not hold. Without a rule, every role may see it. */
export const { add: withVisibility, of: visibilityRuleOf } = makeExtension<VisibilityRule>("visibilityRule");

/** True if the role has the privileges that the element needs. */
export function isVisibleTo(element: WithExtensions, role: RolePrivileges): boolean {
  return visibilityRuleOf(element)?.(role) ?? true;
}

/** The type that a field has where its own type is hidden. */
export const { add: withFallbackType, of: fallbackTypeOf } = makeExtension<GraphQLOutputType>("fallbackType");

/**
 * The value of a field with personal data that the role may not read in all rows; null for an error, undefined for other fields.
 * A function with its owner's rights that returns such rows does not open the column: rows of the table have the same fields.
 */
export function withheldValueOf(field: WithExtensions, role: RolePrivileges): OwnValue | null | undefined {
  const personal = personalColumn.of(field);
  if (!personal || role.may("select", personal.table, personal.column)) return undefined;
  return role.ownValueOf(personal.table, personal.column);
}

export function mayExecute({ extensions }: SchemaResource): VisibilityRule {
  const oid = extensions?.routine?.oid;
  return oid === undefined ? alwaysVisible : (role) => role.mayExecute(oid);
}

/** Requires the privilege on all these columns; if there are none, on the table or any column. */
export function mayUse(privilege: TableAction, resource: SchemaResource, columns?: readonly string[]): VisibilityRule {
  const table = tableIdentityOf(resource.codec);
  if (!table) return alwaysVisible;
  if (!columns) return (role) => role.may(privilege, table);
  return (role) => columns.every((column) => role.may(privilege, table, column));
}

/** Addressing a row by its key requires select on the key. */
export function maySelectKey(table: PgTable): VisibilityRule {
  return mayUse("select", table, keyOf(table) ?? undefined);
}

/** A row that is a value, such as the result of a function, is readable without privileges on its table. */
function maySeeColumn(build: GraphileBuild.Build, codec: Codec, column: string): VisibilityRule {
  const table = tableIdentityOf(codec);
  if (!table) return alwaysVisible;
  const attribute = codec.attributes?.[column];
  // A computed attribute, or one of another table, has no column privilege.
  const own = attribute?.via || attribute?.expression ? undefined : column;
  const sources = rowSourceRulesOf(build).get(codec) ?? [];
  return (role) => role.may("select", table, own) || sources.some((source) => source(role));
}

export function mayFollowRelation(build: GraphileBuild.Build, relation: PgRelation): VisibilityRule {
  const { localCodec, localAttributes, remoteResource, remoteAttributes } = relation;
  const local = localAttributes.map((column) => maySeeColumn(build, localCodec, column));
  return allRules([...local, mayUse("select", remoteResource, remoteAttributes)]);
}

export function allRules(rules: readonly VisibilityRule[]): VisibilityRule {
  return (role) => rules.every((rule) => rule(role));
}

/**
 * A SECURITY DEFINER function shows whole rows to roles that may execute it. Any other function reads with its caller's privileges;
 * to a role without select on the table it can still return rows that it has constructed.
 */
function mayReadFunctionResult(resource: SchemaResource, table: TableIdentity): VisibilityRule {
  const mayCall = mayExecute(resource);
  if (resource.extensions?.routine?.isSecurityDefiner) return mayCall;
  return (role) => mayCall(role) && !role.may("select", table);
}

/** The row types of tables within a type. */
function rowTypesWithin(codec: Codec): ReadonlySet<Codec> {
  const rows = new Set<Codec>();
  const seen = new Set<Codec>();
  const visit = (inner: Codec | undefined) => {
    if (!inner || seen.has(inner)) return;
    seen.add(inner);
    if (tableIdentityOf(inner)) rows.add(inner);
    visit(inner.arrayOfCodec);
    visit(inner.domainOfCodec);
    for (const attribute of Object.values(inner.attributes ?? {})) visit(attribute.codec);
  };
  visit(codec);
  return rows;
}

/** Null for a composite type, which has no privileges. */
function tableIdentityOf({ attributes, extensions }: Codec): TableIdentity | null {
  return attributes && extensions?.isTableLike ? (extensions.pg ?? null) : null;
}

export const UnloggedTablesPlugin: GraphileConfig.Plugin = {
  name: "UnloggedTablesPlugin",
  description: "Unlogged tables are part of the schema; core omits them",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection }) {
        for (const entity of introspection.classes) {
          if (entity.relpersistence === "u") entity.relpersistence = "p";
        }
      },
    },
  },
};
