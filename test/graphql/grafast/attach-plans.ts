import type { FieldPlanResolver } from "grafast";
import {
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isObjectType,
} from "grafast/graphql";
import { type FieldSource, rowFilterOf, sourceOf } from "../../../plugins/field-sources.ts";
import type { Codec, SchemaResource } from "../../../plugins/table.ts";
import { writtenColumnOf } from "../../../plugins/written-columns.ts";
import { planAggregate, planAggregates } from "./aggregate-plans.ts";
import { holdsCompositeValues, planColumn, planOwnValue, planWithheld } from "./column-plans.ts";
import { planEvent } from "./event-plans.ts";
import { applyFilterField, planFilterArgument } from "./filter-plans.ts";
import { planMutation } from "./function-plans.ts";
import { planFunctionRows, planPagePart, planRows } from "./page-plans.ts";
import { planSearchResult } from "./search-plans.ts";
import { shareContext } from "./shared-context.ts";
import { applyColumn, planDelete, planInsert, planRowsWrite, planUpdate } from "./write-plans.ts";

const finished = new WeakSet<GraphQLSchema>();

/** Gives the fields of a schema the plans of what their sources describe, and its inputs the functions that apply their values. */
export function attachPlans(schema: GraphQLSchema): void {
  if (finished.has(schema)) return;
  finished.add(schema);
  // Grafast caches plans in the schema's extensions, under its own symbols; the schemas of roles are made of one.
  const shared = Object.fromEntries(Object.entries(schema.extensions.grafast ?? {}));
  schema.extensions = { ...schema.extensions, grafast: shared };
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__")) continue;
    if (isObjectType(type)) attachToFields(type);
    else if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) attach(field, () => applyOf(field));
    }
  }
}

function attachToFields(type: GraphQLObjectType): void {
  for (const field of Object.values(type.getFields())) {
    for (const argument of field.args) {
      const applyPlan = planFilterArgument(argument);
      if (applyPlan) attach(argument, () => ({ applyPlan }));
    }
    const source = sourceOf(field);
    if (!source) continue;
    for (const resource of resourcesOf(source)) {
      shareContext(resource.executor);
      restrictColumns(resource);
    }
    attach(field, ({ plan }) => plansOf(source, field, plan));
  }
}

/** The tables and functions whose rows a field returns. */
function resourcesOf(source: FieldSource): SchemaResource[] {
  if (source.kind === "related row") return source.path.map(({ remoteResource }) => remoteResource as SchemaResource);
  if ("resource" in source) return [source.resource];
  return "table" in source && source.table ? [source.table] : [];
}

/** To check that a joined row exists, core would select any cheap column that is not null, and so need a privilege that the query does not. */
function restrictColumns({ codec }: SchemaResource): void {
  for (const attribute of Object.values((codec as Codec).attributes ?? {})) attribute.restrictedAccess = true;
}

/** The plans that the builder of the schema has given. */
type BuiltPlans = { readonly plan?: FieldPlanResolver };

type Extensions = { readonly grafast?: BuiltPlans; readonly builtPlans?: BuiltPlans };

/** The schemas of roles share fields and have copies of others, so an element may have been here before. */
function attach(element: { extensions: object }, toPlans: (built: BuiltPlans) => object): void {
  const { grafast, builtPlans = grafast ?? {} } = element.extensions as Extensions;
  element.extensions = { ...element.extensions, builtPlans, grafast: { ...builtPlans, ...toPlans(builtPlans) } };
}

function applyOf(field: GraphQLInputField): object {
  const written = writtenColumnOf(field);
  if (written) return { apply: applyColumn(written) };
  const filter = rowFilterOf(field);
  return filter ? { apply: applyFilterField(filter) } : {};
}

function plansOf(
  source: FieldSource,
  field: GraphQLField<unknown, unknown>,
  built: FieldPlanResolver | undefined,
): object {
  switch (source.kind) {
    case "column": {
      // Core's assertions do not know the steps of composite values.
      if (holdsCompositeValues(source.codec)) attach(getNamedType(field.type), () => ({ assertStep: null }));
      const plan = planColumn(source);
      return plan ? { plan } : {};
    }
    case "own value":
      return { plan: planOwnValue(source) };
    case "withheld":
      return { plan: planWithheld(source) };
    case "rows":
      return { plan: planRows(source, built) };
    case "call": {
      const { isUnique, isList } = source.resource;
      return isUnique || isList ? {} : { plan: planFunctionRows(built!, source.maxPageSize) };
    }
    case "mutation":
      return { plan: planMutation(source) };
    case "write":
      return { plan: { create: planInsert, update: planUpdate, delete: planDelete }[source.verb](source) };
    case "rows write":
      return { plan: planRowsWrite(source) };
    case "event":
      return planEvent(source);
    case "aggregates":
      return { plan: planAggregates(source) };
    case "aggregates part":
      return { plan: ($row: object) => $row };
    case "aggregate":
      return { plan: planAggregate(source) };
    case "search result":
      return { plan: planSearchResult(source) };
    case "page": {
      const plan = planPagePart(source.part);
      return plan ? { plan } : {};
    }
    default:
      return {};
  }
}
