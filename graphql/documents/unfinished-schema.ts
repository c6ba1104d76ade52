import { type GraphQLNamedType, type GraphQLObjectType, GraphQLSchema } from "grafast/graphql";

type RootTypes = {
  readonly query: GraphQLObjectType | null | undefined;
  readonly mutation: GraphQLObjectType | null | undefined;
};

type TypeMap = ReturnType<GraphQLSchema["getTypeMap"]>;

/**
 * The schema of a build whose types are still being made: each is made when a document names it or reaches it. It has no
 * subscriptions, and does not know which types implement an interface.
 */
export class UnfinishedSchema extends GraphQLSchema {
  readonly #build: GraphileBuild.Build;
  readonly #roots: RootTypes;
  readonly #types: TypeMap;

  constructor(build: GraphileBuild.Build, roots: RootTypes) {
    super({ assumeValid: true });
    this.#build = build;
    this.#roots = roots;
    this.#types = new Proxy<TypeMap>(Object.create(null), {
      get: (_, name) => (typeof name === "string" ? this.getType(name) : undefined),
      has: (_, name) => typeof name === "string" && this.getType(name) !== undefined,
      ownKeys: () => this.#madeTypeNames(),
      getOwnPropertyDescriptor: (_, name) => ({
        value: this.getType(name as string),
        enumerable: true,
        configurable: true,
      }),
    });
  }

  override getQueryType() {
    return this.#roots.query;
  }

  override getMutationType() {
    return this.#roots.mutation;
  }

  override getType(name: string): GraphQLNamedType | undefined {
    return super.getTypeMap()[name] ?? this.#build.getTypeByName(name) ?? undefined;
  }

  /** Looks up all types, and lists those that are made. */
  override getTypeMap(): TypeMap {
    return this.#types;
  }

  #madeTypeNames(): string[] {
    const made = Object.entries(this.#build.getAllTypes()).filter(([, type]) => type != null);
    return [...new Set([...Object.keys(super.getTypeMap()), ...made.map(([name]) => name)])];
  }
}
