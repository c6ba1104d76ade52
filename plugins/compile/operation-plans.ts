import {
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getVariableValues,
  type OperationDefinitionNode,
  typeFromAST,
} from "grafast/graphql";
import { RecentMap } from "../../engine/cache/recent-map.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { type CompiledOperation, type CompiledStatement, compileOperation } from "./compile-operation.ts";
import { NotCompiled } from "./not-compiled.ts";
import { bindParameters, type CoercedVariables, presenceOf } from "./operation-values.ts";

/** A compiled operation with the values of one request. */
export type BoundOperation = {
  readonly compiled: CompiledOperation;
  readonly statement: Statement;
  readonly before: Statement | undefined;
};

/** Per operation: each number of rows, and each combination of given variables, has a statement of its own. */
const MAX_STATEMENTS = 32;

type OperationPlansOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** Called before the text of a statement is kept. */
  readonly reserve: (characters: number) => void;
};

/** The statements of one operation. */
export class OperationPlans {
  readonly #options: OperationPlansOptions;
  readonly #variableTypes: readonly (readonly [name: string, type: GraphQLInputType])[];
  /** Variables whose values are part of the text. */
  readonly #fixed = new Set<string>();
  readonly #plans = new RecentMap<string, CompiledOperation | NotCompiled>(2 * MAX_STATEMENTS);

  constructor(options: OperationPlansOptions) {
    this.#options = options;
    const { schema, operation } = options;
    this.#variableTypes = (operation.variableDefinitions ?? []).map(({ variable, type }) => {
      const input = typeFromAST(schema, type as Parameters<typeof typeFromAST>[1]) as GraphQLInputType;
      return [variable.name.value, input];
    });
  }

  /** Throws NotCompiled when Grafast must run the operation, which also explains values that are not acceptable. */
  bind(inputs: CoercedVariables): BoundOperation {
    const variables = this.#coerce(inputs);
    const compiled = this.#find(variables);
    if (compiled instanceof NotCompiled) throw compiled;
    try {
      const { before } = compiled;
      return {
        compiled,
        statement: bindStatement(compiled, variables),
        before: before === null ? undefined : bindStatement(before, variables),
      };
    } catch (error) {
      throw asNotCompiled(error);
    }
  }

  #coerce(inputs: CoercedVariables): CoercedVariables {
    const { schema, operation } = this.#options;
    if (this.#variableTypes.length === 0) return {};
    const { coerced, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs, {
      maxErrors: 1,
    });
    if (errors) throw new NotCompiled("argument", errors[0]!.message);
    return coerced;
  }

  #find(variables: CoercedVariables): CompiledOperation | NotCompiled {
    const found = this.#plans.get(this.#keyOf(variables));
    if (found) return found;
    const known = this.#fixed.size;
    const compiled = this.#compile(variables);
    // Keys of fewer values do not tell statements apart.
    if (this.#fixed.size > known) this.#plans.clear();
    this.#plans.set(this.#keyOf(variables), compiled);
    return compiled;
  }

  #compile(variables: CoercedVariables): CompiledOperation | NotCompiled {
    const { schema, document, operation, reserve } = this.#options;
    try {
      const compiled = compileOperation({ schema, document, operation, variables, fixed: this.#fixed });
      reserve(compiled.text.length + (compiled.before?.text.length ?? 0));
      return compiled;
    } catch (error) {
      return asNotCompiled(error);
    }
  }

  #keyOf(variables: CoercedVariables): string {
    const parts = this.#variableTypes.map(([name, type]) => {
      const value = variables[name];
      const isFixed = this.#fixed.has(name) && value !== undefined;
      return isFixed ? JSON.stringify(value) : presenceOf(value, type);
    });
    return parts.join();
  }
}

function bindStatement({ text, parameters }: CompiledStatement, variables: CoercedVariables): Statement {
  return { text, values: bindParameters(parameters, variables) };
}

/** Values that a codec or a page refuses are explained by Grafast, and so is what the compiler did not expect. */
function asNotCompiled(error: unknown): NotCompiled {
  if (error instanceof NotCompiled) return error;
  const message = error instanceof GraphQLError || error instanceof Error ? error.message : String(error);
  return new NotCompiled("argument", message);
}
