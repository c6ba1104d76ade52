import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from "grafast/graphql";
import { isTransaction } from "#plugins";
import type { ParameterValue } from "#postgres/statement";
import type { Stepwise } from "#runtime/concurrency";
import { NotCompiled } from "./not-compiled.ts";
import { OperationCompiler } from "./operation-compiler.ts";
import { type CoercedVariables, OperationValues, type Parameter } from "./operation-values.ts";
import type { RowWrite } from "./row-write.ts";
import {
  isTypename,
  oneFieldEach,
  type RootField,
  type SelectedField,
  SelectionReader,
  withFields,
} from "./selection-reader.ts";
import { toPgText } from "./text-values.ts";

/** A query, or one field of a mutation: a statement that returns the text of these fields of `data`. */
export type CompiledStep = CompiledStatement & {
  /** The document for Grafast, when it must repeat the step. */
  readonly document: DocumentNode;
  /** The call of a mutation's function, or the write of a row, sent first in the same transaction. */
  readonly before: CompiledStatement | null;
  /** In a transaction, a statement that returns a row if the function's result says that it was not successful. */
  readonly failureText: string | null;
  /** The row that it writes, by this statement or the one before. Null: it writes by a function, or reads. */
  readonly write: RowWrite | null;
  /** The text holds JSON of the database, which must be written again in JavaScript's format. */
  readonly holdsJson: boolean;
  readonly rootFields: readonly RootField[];
};

/** The steps run one after the other. Each field of a mutation is a transaction of its own, unless the operation is one. */
export type CompiledOperation = readonly CompiledStep[];

export type CompiledStatement = {
  readonly text: string;
  readonly parameters: readonly (Parameter | ParameterValue)[];
};

/** Deeper statements take Postgres longer to plan than Grafast takes. */
const MAX_TEXT_LENGTH = 200_000;

type CompileOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: CoercedVariables;
  /** Receives the names of variables whose values are part of the text. */
  readonly fixed: Set<string>;
};

/** Throws NotCompiled for an operation that has a field without a source, or a value that SQL cannot spell. */
export function* compileOperation({
  schema,
  document,
  operation,
  variables,
  fixed,
}: CompileOptions): Stepwise<CompiledOperation> {
  if (operation.operation === OperationTypeNode.SUBSCRIPTION) throw new NotCompiled("subscription", "");
  yield;
  const type = schema.getRootType(operation.operation)!;
  const values = new OperationValues(variables, fixed);
  const selections = new SelectionReader(schema, document, values);
  const fields = [...selections.fieldsOf(type, [operation.selectionSet])];
  if (fields.every(([, nodes]) => isTypename(nodes))) {
    throw new NotCompiled("introspection", "It reads nothing of the database.");
  }
  function* compileStep(own: readonly SelectedField[], whole: DocumentNode): Stepwise<CompiledStep> {
    const compiler = new OperationCompiler(selections, values);
    const rootFields: RootField[] = [];
    const data = yield* compiler.root(type, own, rootFields);
    const { call, write, holdsJson } = compiler;
    const failureText = isTransaction(operation) ? compiler.failureText : null;
    const statement = toStatement(write ? write.statementOf(data) : sql`select ${data}`);
    const before = write ? write.before : call;
    const compiledBefore = before && toStatement(before);
    return { ...statement, document: whole, before: compiledBefore, failureText, write, holdsJson, rootFields };
  }
  const groups = type === schema.getMutationType() ? oneFieldEach(fields) : [fields];
  if (groups.length === 1) return [yield* compileStep(fields, document)];
  const steps: CompiledStep[] = [];
  for (const own of groups) steps.push(yield* compileStep(own, withFields(document, operation, own)));
  return steps;
}

function toStatement(whole: SQL): CompiledStatement {
  const { text, values } = sql.compile(whole);
  if (text.length > MAX_TEXT_LENGTH) throw new NotCompiled("size", String(text.length));
  const parameters = (values as unknown[]).map((value) =>
    typeof value === "function" ? (value as Parameter) : toPgText(value),
  );
  return { text, parameters };
}
