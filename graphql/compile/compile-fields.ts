import {
  type ExecutionResult,
  type GraphQLError,
  getOperationAST,
  getVariableValues,
  type OperationDefinitionNode,
} from "grafast/graphql";
import type { Stepwise } from "#runtime/concurrency";
import { type CompiledStep, compileStep, type StepOptions } from "./compile-operation.ts";
import { type BoundStep, bindStep } from "./operation-plans.ts";
import {
  type CoercedVariables,
  EVENT_KEYS,
  type EventKeys,
  MAX_BYTES,
  OperationValues,
  type RequestedOperation,
} from "./operation-values.ts";
import { type SelectedField, SelectionReader } from "./selection-reader.ts";
import { completeResult, type LeftOutFields, type RootValue, ValueCompletion } from "./value-completion.ts";

export type FieldStep = BoundStep<Omit<CompiledStep, "document">>;

/** A field of the operation itself, with the statement that reads its values; or with the error of its arguments. */
export type CompiledField = {
  readonly key: string;
  readonly completion: ValueCompletion;
  readonly bound: FieldStep | Error;
};

/** An operation whose fields have statements of their own, for one request. */
export type CompiledFields = {
  readonly fields: readonly CompiledField[];
  /** The field of that key without some of those that it selects. */
  compileWithout(key: string, leftOut: LeftOutFields): Stepwise<CompiledField>;
  /** The result with the values of the fields. */
  complete(values: ReadonlyMap<string, RootValue>): ExecutionResult;
};

/** The limit of graphql-js. */
const MAX_VARIABLE_ERRORS = 50;

type CompileFieldsOptions = RequestedOperation & {
  /** The keys of the row of a subscription's event. */
  readonly event: EventKeys | null;
  /** The number of bytes that the response may have. */
  readonly maxBytes: number;
};

/**
 * Compiles each field of an operation by itself, for values that are completed afterwards. Fields of introspection have no statement. Returns
 * the errors of variables, if there are any.
 */
export function* compileFields(options: CompileFieldsOptions): Stepwise<CompiledFields | readonly GraphQLError[]> {
  const { schema, document, operationName, variables: inputs, event, maxBytes } = options;
  const operation = getOperationAST(document, operationName) as OperationDefinitionNode;
  const { coerced, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs, {
    maxErrors: MAX_VARIABLE_ERRORS,
  });
  if (!coerced) return errors!;
  const variables = { ...coerced, [MAX_BYTES]: maxBytes, ...(event && { [EVENT_KEYS]: event }) };
  const type = schema.getRootType(operation.operation)!;
  const values = new OperationValues(schema, variables, new Set());
  const selections = new SelectionReader(schema, document, values);
  const selected = selections.fieldsOf(type, [operation.selectionSet]);
  const step = { operation, type, selections, values };
  const compileWithout = (key: string, leftOut: LeftOutFields) =>
    compileField(
      { ...step, completion: new ValueCompletion(variables, leftOut) },
      [key, selected.get(key)!],
      variables,
    );
  const fields: CompiledField[] = [];
  for (const [key, nodes] of selected) {
    if (!nodes[0]!.name.value.startsWith("__")) fields.push(yield* compileWithout(key, new Map()));
  }
  const complete: CompiledFields["complete"] = (read) =>
    completeResult({ schema, document, operationName, variables: inputs }, read);
  return { fields, compileWithout, complete };
}

function* compileField(
  options: StepOptions & { readonly completion: ValueCompletion },
  field: SelectedField,
  variables: CoercedVariables,
): Stepwise<CompiledField> {
  const { completion } = options;
  const [key] = field;
  try {
    const step = yield* compileStep(options, [field]);
    return { key, completion, bound: bindStep(step, variables) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { key, completion, bound: error };
  }
}
