import { type GraphQLField, type GraphQLSchema, isInputObjectType } from "grafast/graphql";
import { sourceOf } from "../../../plugins/field-sources.ts";
import { writtenColumnOf } from "../../../plugins/written-columns.ts";
import { planEvent } from "./event-plans.ts";
import { applyColumn, planDelete, planInsert, planRowsWrite, planUpdate } from "./write-plans.ts";

const finished = new WeakSet<GraphQLSchema>();

/** Gives the fields of a schema the plans of what their sources describe, and its input fields the functions that set columns. */
export function attachPlans(schema: GraphQLSchema): void {
  if (finished.has(schema)) return;
  finished.add(schema);
  // Grafast caches plans in the schema's extensions, under its own symbols; the schemas of roles are made of one.
  const shared = Object.fromEntries(Object.entries(schema.extensions.grafast ?? {}));
  schema.extensions = { ...schema.extensions, grafast: shared };
  for (const root of [schema.getMutationType(), schema.getSubscriptionType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) attach(field, plansOf(field));
  }
  for (const type of Object.values(schema.getTypeMap()).filter(isInputObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const written = writtenColumnOf(field);
      if (written) attach(field, { apply: applyColumn(written) });
    }
  }
}

function attach(part: { extensions: object }, plans: object): void {
  const { grafast } = part.extensions as { readonly grafast?: object };
  part.extensions = { ...part.extensions, grafast: { ...grafast, ...plans } };
}

function plansOf(field: GraphQLField<unknown, unknown>): object {
  const source = sourceOf(field);
  switch (source?.kind) {
    case "write":
      return { plan: { create: planInsert, update: planUpdate, delete: planDelete }[source.verb](source) };
    case "rows write":
      return { plan: planRowsWrite(source) };
    case "event":
      return planEvent(source);
    default:
      return {};
  }
}
