import {
  generatePgParameterAnalysis,
  type PgCodec,
  type PgSelectArgumentDigest,
  type PgSelectArgumentSpec,
  pgFromExpressionRuntime,
  pgSelect,
  TYPES,
} from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  bakedInput,
  context,
  type ExecutionDetails,
  type FieldArgs,
  type FieldPlanResolver,
  type GrafastResultsList,
  lambda,
  operationPlan,
  Step,
  sideEffect,
} from "grafast";
import type { FieldSource, FunctionArgument } from "../../../plugins/field-sources.ts";
import {
  failureTextOf,
  fitsInSetting,
  isSignUp,
  keepResult,
  RESULT_SETTING,
  resultRows,
} from "../../../plugins/function-call.ts";
import type { SchemaResource } from "../../../plugins/table.ts";

declare global {
  namespace Grafast {
    interface Context {
      /** Null: the caller's sign-ups are not limited. */
      countSignUp?: (() => Promise<void>) | null;
    }
  }
}

/** Calls a function that may write, and reads its result. */
export function planMutation({
  resource,
  args: described,
}: Extract<FieldSource, { readonly kind: "mutation" }>): FieldPlanResolver {
  return (_$root, args) => {
    countSignUps(resource);
    const $result = callFunctionAndRead(resource, argumentsOf(described, args));
    return resource.codec === TYPES.void ? lambda($result, () => true) : $result;
  };
}

/** Counts a sign-up. Steps that are planned later run only if the limit is not exceeded. */
export function countSignUps(resource: SchemaResource): void {
  if (isSignUp(resource)) sideEffect(context(), ({ countSignUp }) => countSignUp?.());
}

/** The function's arguments are `id`, and fields of `input`. */
function argumentsOf(described: readonly FunctionArgument[], args: FieldArgs): PgSelectArgumentSpec[] {
  return described.map(({ argument, codec, name }) => {
    const path = argument === "id" ? [argument] : ["input", argument];
    const step = operationPlan().withRootLayerPlan(() => bakedInput(args.typeAt(path), args.getRaw(path)));
    return { step, pgCodec: codec, ...(name !== undefined && { name }) };
  });
}

/**
 * Calls a function and reads its result with another statement of the same transaction and round trip: a statement that begins after
 * the call sees its changes, and can join everything else that was selected, so no further statement is needed.
 */
function callFunctionAndRead(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]): Step {
  if (!fitsInSetting(resource)) return resource.execute(args, "mutation");
  const $call = new FunctionCallStep(resource, args);
  const $rows = pgSelect({
    resource,
    identifiers: [],
    // A join cannot disturb the order of a single row.
    ...(resource.isUnique && { hasImplicitOrder: false }),
    from: resultRows(resource),
  });
  // So the call is one of the values of the statement; the value that replaces it is never null.
  $rows.where(sql`${$rows.placeholder($call, FUNCTION_CALL_CODEC)} is not null`);
  return resource.isUnique ? $rows.single() : $rows;
}

/** A call of a volatile function. It is sent before the statement that has it as one of its values. */
export class FunctionCall {
  readonly text: string;
  readonly values: readonly unknown[];
  /** The statement that returns a row if the result says that the call was not successful. Null: the result does not say it. */
  readonly failureText: string | null;
  /** The value that replaces the call in that statement. */
  readonly result = RESULT_SETTING;

  constructor(text: string, values: readonly unknown[], failureText: string | null) {
    this.text = text;
    this.values = values;
    this.failureText = failureText;
  }
}

/** Passes the call unchanged to the client that sends statements. */
const FUNCTION_CALL_CODEC: PgCodec = { ...TYPES.text, toPg: (call) => call };

class FunctionCallStep extends Step<FunctionCall> {
  static override $$export = { moduleName: import.meta.filename, exportName: "FunctionCallStep" };
  readonly #resource: SchemaResource;
  readonly #analysis: ReturnType<typeof generatePgParameterAnalysis>;
  readonly #args: readonly { readonly name?: string; readonly dependency: number }[];
  readonly #failureText: string | null;

  constructor(resource: SchemaResource, args: readonly PgSelectArgumentSpec[]) {
    super();
    this.hasSideEffects = true;
    // Grafast may move steps that are synchronous and safe; if this is unset, it warns in development.
    this.isSyncAndSafe = false;
    this.#resource = resource;
    this.#failureText = failureTextOf(resource);
    this.#analysis = generatePgParameterAnalysis(resource.parameters);
    this.#args = args.map(({ step, name }) => ({
      dependency: this.addDependency(step),
      ...(name !== undefined && { name }),
    }));
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<FunctionCall> {
    const { parameters } = this.#resource;
    const from = this.#resource.from as (...args: readonly PgSelectArgumentDigest[]) => SQL;
    return indexMap((index) => {
      const digests = this.#args.map(({ dependency, ...arg }) => ({ ...arg, value: values[dependency]!.at(index) }));
      const call = pgFromExpressionRuntime(from, parameters, digests, this.#analysis);
      const { text, values: own } = sql.compile(keepResult(call));
      return new FunctionCall(text, own, this.#failureText);
    });
  }
}
