import { objectFieldSpec } from "grafast";
import { GraphQLInputObjectType, GraphQLObjectType } from "grafast/graphql";
import type { SchemaBuilder } from "graphile-build";
import type { Codec } from "#plugins";
import type { Stepwise } from "#runtime/concurrency";

type TypeScope = {
  readonly pgCodec?: Codec;
  readonly isRootQuery?: boolean;
  readonly isRootMutation?: boolean;
  readonly isRootSubscription?: boolean;
  readonly isRowCondition?: boolean;
  readonly isRowOrder?: boolean;
  readonly isMutationInput?: boolean;
};
type DeferrableType = GraphQLObjectType | GraphQLInputObjectType;
type ObjectFields = ReturnType<GraphQLObjectType["getFields"]>;
type FieldSpec = Parameters<typeof objectFieldSpec>[0];
type FieldsContext = GraphileBuild.ContextObjectFields;
type ApplyHooks = (name: string, input: object, build: object, context: FieldsContext, debug?: string) => object;

/** A placeholder for core's check whether a type has fields. */
const PLACEHOLDER_FIELDS: ObjectFields = { some: {} as ObjectFields[string] };

/**
 * Core evaluates the fields of each type as soon as it is made, which makes the types of these fields recursively, so a long path of
 * foreign keys exceeds the stack. This defers the fields of row types and of inputs of tables, which other types refer to, and makes
 * each field of a root type when it is first looked up.
 */
export class DeferredFields {
  readonly #waiting: DeferrableType[] = [];
  readonly #roots: { readonly type: GraphQLObjectType; readonly fields: ObjectFields }[] = [];
  /** Names of types that turned out to have no fields: these are not deferred, so that core omits them. */
  readonly #withoutFields: Set<string>;
  readonly #builder: SchemaBuilder;
  /** The error of a field. The first lookup throws it, and the build throws it once more, since core takes its type for absent from then on. */
  #fault: { readonly error: unknown } | null = null;

  constructor(builder: SchemaBuilder, withoutFields: Set<string>) {
    this.#builder = builder;
    this.#withoutFields = withoutFields;
    const { newWithHooks } = builder;
    builder.newWithHooks = (build, Type, spec, scope) => {
      const type = newWithHooks(build, Type, spec, scope);
      if (type instanceof GraphQLObjectType && isRoot(scope as TypeScope)) this.#deferEachField(type);
      else if (isDeferrable(type) && this.#hasFields(type, scope as TypeScope, build)) this.#defer(type);
      return type;
    };
  }

  /** Evaluates all fields of root types, and with them all types. Yields once per field and type. Returns as `settle` does. */
  *settleRoots(): Stepwise<boolean> {
    for (const { fields } of this.#roots) {
      for (const name of Object.keys(fields)) {
        void fields[name];
        yield;
        if (!(yield* this.settle())) return false;
      }
    }
    return true;
  }

  /** Evaluates the deferred types; returns false at the first one without fields. Yields once per type. */
  *settle(): Stepwise<boolean> {
    this.#throwFault();
    for (let type = this.#waiting.pop(); type; type = this.#waiting.pop()) {
      if (Object.keys(type.getFields()).length === 0) {
        this.#withoutFields.add(type.name);
        return false;
      }
      yield;
      this.#throwFault();
    }
    return true;
  }

  #throwFault(): void {
    if (this.#fault) throw this.#fault.error;
  }

  #noteFault<Result>(evaluate: () => Result): Result {
    try {
      return evaluate();
    } catch (error) {
      this.#fault ??= { error };
      throw error;
    }
  }

  /** True if the type probably has fields. */
  #hasFields({ name }: DeferrableType, scope: TypeScope, { behavior }: GraphileBuild.Build): boolean {
    if (this.#withoutFields.has(name)) return false;
    const { pgCodec, isRowCondition, isRowOrder, isMutationInput } = scope;
    if (isRowCondition || isRowOrder || isMutationInput) return true;
    if (!pgCodec?.attributes) return false;
    return Object.keys(pgCodec.attributes).some((column) =>
      behavior.pgCodecAttributeMatches([pgCodec as never, column], "attribute:select"),
    );
  }

  #defer(type: DeferrableType): void {
    const evaluate = () => {
      Reflect.deleteProperty(type, "getFields");
      return this.#noteFault(() => type.getFields());
    };
    // Core's first call after making a type only checks whether it has fields.
    const answerCheck = () => {
      type.getFields = evaluate as never;
      return PLACEHOLDER_FIELDS;
    };
    type.getFields = answerCheck as never;
    this.#waiting.push(type);
  }

  #deferEachField(type: GraphQLObjectType): void {
    type.getFields = () => {
      Reflect.deleteProperty(type, "getFields");
      const fields = this.#noteFault(() => this.#rootFieldsOf(type));
      Object.assign(type, { _fields: fields });
      this.#roots.push({ type, fields });
      return fields;
    };
  }

  /** The fields by name; each is made when it is looked up. */
  #rootFieldsOf(type: GraphQLObjectType): ObjectFields {
    const fields: ObjectFields = Object.create(null);
    for (const [name, specOf] of this.#rootFieldSpecs(type)) {
      const make = () => {
        const value = this.#noteFault(() => makeField(type, name, specOf()));
        Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
        return value;
      };
      Object.defineProperty(fields, name, { get: make, enumerable: true, configurable: true });
    }
    return fields;
  }

  /** Runs the hooks that add fields. The hooks give each field to core's `fieldWithHooks`, whose work is put off. */
  #rootFieldSpecs(type: GraphQLObjectType): Map<string, () => FieldSpec> {
    const specs = new Map<string, () => FieldSpec>();
    const builder = this.#builder as unknown as { applyHooks: ApplyHooks };
    const applyHooks = builder.applyHooks.bind(builder);
    builder.applyHooks = (name, input, build, context, debug) => {
      if (name !== "GraphQLObjectType_fields" || context.Self !== type) {
        return applyHooks(name, input, build, context, debug);
      }
      const deferred = new Map<unknown, () => FieldSpec>(Object.values(input).map((spec) => [spec, () => spec]));
      const fieldWithHooks = (...[scope, spec]: Parameters<FieldsContext["fieldWithHooks"]>) => {
        const placeholder = {};
        deferred.set(placeholder, () => context.fieldWithHooks(scope, spec) as FieldSpec);
        return placeholder;
      };
      const fields = applyHooks(name, input, build, { ...context, fieldWithHooks } as FieldsContext, debug);
      for (const [fieldName, spec] of Object.entries(fields)) {
        specs.set(fieldName, deferred.get(spec) ?? (() => context.fieldWithHooks({ fieldName }, spec) as FieldSpec));
      }
      return {};
    };
    try {
      type.getFields();
    } finally {
      Reflect.deleteProperty(builder, "applyHooks");
    }
    return specs;
  }
}

function isRoot({ isRootQuery, isRootMutation, isRootSubscription }: TypeScope): boolean {
  return Boolean(isRootQuery || isRootMutation || isRootSubscription);
}

function isDeferrable(type: unknown): type is DeferrableType {
  return type instanceof GraphQLObjectType || type instanceof GraphQLInputObjectType;
}

function makeField({ name: typeName }: GraphQLObjectType, name: string, spec: FieldSpec): ObjectFields[string] {
  const fields = { [name]: objectFieldSpec(spec, `${typeName}.${name}`) };
  return new GraphQLObjectType({ name: typeName, fields }).getFields()[name]!;
}
