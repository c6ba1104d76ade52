import type { SchemaBuilder } from "postgraphile/graphile-build";
import { GraphQLObjectType } from "postgraphile/graphql";
import type { Stepwise } from "../../engine/stepwise.ts";
import type { Codec } from "../table.ts";

type Build = GraphileBuild.Build;
type Scope = { readonly pgCodec?: Codec };
type Fields = ReturnType<GraphQLObjectType["getFields"]>;

/** Some field, for who only asks whether a type has any. */
const SOME_FIELDS: Fields = { some: {} as Fields[string] };

/**
 * Core asks each type for its fields as soon as it has made it, and thereby makes the types of these, and theirs: one within the
 * other, so that a long path of foreign keys exceeds the stack. With this, the row types of tables wait for their turn; all other
 * types refer to few that are not row types. Yields once for each type whose turn it was.
 */
export class PostponedFields {
  readonly #waiting: GraphQLObjectType[] = [];
  /** Names of types that turned out to have no fields: those do not wait, so that core leaves them out. */
  readonly #withoutFields: Set<string>;

  constructor(builder: SchemaBuilder, withoutFields: Set<string>) {
    this.#withoutFields = withoutFields;
    const { newWithHooks } = builder;
    builder.newWithHooks = (build, Type, spec, scope) => {
      const type = newWithHooks(build, Type, spec, scope);
      if (type instanceof GraphQLObjectType && this.#mayWait(type, scope as Scope, build)) this.#postpone(type);
      return type;
    };
  }

  /** Returns whether each of them has fields, as was assumed; one without ends it. */
  *settle(): Stepwise<boolean> {
    for (let type = this.#waiting.pop(); type; type = this.#waiting.pop()) {
      if (Object.keys(type.getFields()).length === 0) {
        this.#withoutFields.add(type.name);
        return false;
      }
      yield;
    }
    return true;
  }

  #mayWait({ name }: GraphQLObjectType, { pgCodec }: Scope, { behavior }: Build): boolean {
    if (!pgCodec?.attributes || this.#withoutFields.has(name)) return false;
    return Object.keys(pgCodec.attributes).some((column) =>
      behavior.pgCodecAttributeMatches([pgCodec as never, column], "attribute:select"),
    );
  }

  #postpone(type: GraphQLObjectType): void {
    // Core's only question right after it has made a type: are there any?
    type.getFields = () => {
      Reflect.deleteProperty(type, "getFields");
      return SOME_FIELDS;
    };
    this.#waiting.push(type);
  }
}
