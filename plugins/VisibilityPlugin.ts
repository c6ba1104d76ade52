import type {} from "postgraphile";
import { functionsAtRoot, functionsOfType } from "./FunctionsFirstPlugin.ts";
import type { Codec, Relation, Resource } from "./table.ts";
import {
  every,
  mayExecute,
  mayFollow,
  maySeeColumn,
  mayUse,
  tableOf,
  type VisibleTo,
  visibilityOf,
  visibleTo,
} from "./visibility.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      VisibilityPlugin: true;
    }
  }
}

type Build = GraphileBuild.Build;

export const VisibilityPlugin: GraphileConfig.Plugin = {
  name: "VisibilityPlugin",
  description: "Fields that core makes of tables and functions know which privileges they need",
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
      GraphQLObjectType_fields_field: (field, build, { scope }) => withRule(field, () => ruleOfField(build, scope)),
      GraphQLInterfaceType_fields_field: (field, build, { scope }) => withRule(field, () => ruleOfField(build, scope)),
      GraphQLInputObjectType_fields_field: (field, _build, { scope }) => withRule(field, () => ruleOfInputField(scope)),
    },
  },
};

/** Plugins of ours have said it of their own fields. */
function withRule<Field extends object>(field: Field, ruleOf: () => VisibleTo | null): Field {
  if (visibilityOf(field)) return field;
  const rule = ruleOf();
  return rule ? visibleTo(field, rule) : field;
}

type FieldScope = Partial<GraphileBuild.ScopeObjectFieldsField>;

function ruleOfField(build: Build, scope: FieldScope): VisibleTo | null {
  const { pgCodec, pgFieldAttribute, pgRelationDetails, pgRefDetails, pgFieldResource, pgFieldResourceUnique } = scope;
  if (pgFieldAttribute) return maySeeColumn(build, pgCodec!, columnOf(pgCodec!, pgFieldAttribute));
  if (pgRelationDetails) {
    const { registry, codec, relationName } = pgRelationDetails;
    return mayFollow(build, registry.pgRelations[codec.name]![relationName]!);
  }
  if (pgRefDetails) return every(relationsOf(pgRefDetails).map((relation) => mayFollow(build, relation)));
  const called = pgFieldResource?.parameters ? pgFieldResource : functionOf(build, scope);
  if (called) return mayExecute(called);
  return pgFieldResource ? mayUse("select", pgFieldResource, pgFieldResourceUnique?.attributes) : null;
}

/** Where a function returns one value, the field does not say of which function it is. */
function functionOf(build: Build, { fieldName, fieldBehaviorScope, pgCodec }: FieldScope): Resource | undefined {
  if (fieldBehaviorScope === "queryField:single") return functionsAtRoot(build).get(fieldName!);
  return fieldBehaviorScope === "typeField:single" ? functionsOfType(build, pgCodec!).get(fieldName!) : undefined;
}

/** A reference leads over several relations, and in several ways at once. */
function relationsOf({ registry, codec, ref }: GraphileBuild.PgRelationsPluginRefDetails): Relation[] {
  return ref.paths.flatMap((path) => {
    let from: Codec = codec;
    return path.map(({ relationName }) => {
      const relation = registry.pgRelations[from.name]![relationName]! as Relation;
      from = relation.remoteResource.codec;
      return relation;
    });
  });
}

/** Of a row that a function takes. */
function ruleOfInputField({ pgCodec, pgAttribute }: GraphileBuild.ScopeInputObjectFieldsField): VisibleTo | null {
  const table = pgCodec && pgAttribute ? tableOf(pgCodec) : null;
  if (!table) return null;
  const column = columnOf(pgCodec!, pgAttribute!);
  const uses = ["select", "insert", "update"] as const;
  return (role) =>
    uses.some((privilege) => role.may(privilege, table, column)) ||
    !uses.some((privilege) => role.may(privilege, table));
}

function columnOf({ attributes }: Codec, attribute: object): string {
  return Object.keys(attributes!).find((name) => attributes![name] === attribute)!;
}
