import { requestJson } from "../api/client.ts";

export type TypeRef = { readonly kind: string; readonly name: string | null; readonly ofType?: TypeRef | null };
export type InputValue = { readonly name: string; readonly type: TypeRef; readonly defaultValue: string | null };
export type GraphqlField = { readonly name: string; readonly type: TypeRef; readonly args: readonly InputValue[] };
export type GraphqlType = {
  readonly kind: string;
  readonly name: string;
  readonly fields: readonly GraphqlField[] | null;
  readonly inputFields: readonly InputValue[] | null;
  readonly enumValues: readonly { readonly name: string }[] | null;
};

/** What a role sees of the schema. */
export type GraphqlSchema = {
  readonly queries: readonly GraphqlField[];
  readonly mutations: readonly GraphqlField[];
  readonly types: ReadonlyMap<string, GraphqlType>;
};

type IntrospectionResult = {
  readonly data?: {
    readonly __schema: {
      readonly queryType: { readonly name: string } | null;
      readonly mutationType: { readonly name: string } | null;
      readonly types: readonly GraphqlType[];
    };
  } | null;
  readonly errors?: readonly { readonly message: string }[];
};

const INTROSPECTION = `query Introspection {
  __schema {
    queryType { name }
    mutationType { name }
    types {
      kind
      name
      fields { name type { ...Ref } args { name defaultValue type { ...Ref } } }
      inputFields { name defaultValue type { ...Ref } }
      enumValues { name }
    }
  }
}
fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`;

export async function loadGraphqlSchema(signal: AbortSignal): Promise<GraphqlSchema> {
  const body = { query: INTROSPECTION };
  const { data, errors } = await requestJson<IntrospectionResult>("/graphql", { method: "POST", body, signal });
  if (!data) throw new Error(errors?.[0]?.message ?? "");
  const { queryType, mutationType, types } = data.__schema;
  const byName = new Map(types.map((type) => [type.name, type]));
  const fieldsOf = (root: { readonly name: string } | null) => byName.get(root?.name ?? "")?.fields ?? [];
  return { queries: fieldsOf(queryType), mutations: fieldsOf(mutationType), types: byName };
}

/** The type without lists and non-null. */
export function namedType(type: TypeRef): TypeRef {
  return type.ofType ? namedType(type.ofType) : type;
}

/** As in a document: `[String!]!`. */
export function printType(type: TypeRef): string {
  if (type.kind === "NON_NULL") return `${printType(type.ofType!)}!`;
  return type.kind === "LIST" ? `[${printType(type.ofType!)}]` : (type.name ?? "");
}
