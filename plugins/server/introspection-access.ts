import { GraphQLError } from "postgraphile/graphql";
import type { Config } from "../../engine/config/config.ts";
import { GraphqlRefusal } from "./documents.ts";

/** Who may ask about the schema. */
export type IntrospectionAccess = {
  /** Throws unless callers of this role may ask for `__schema` and `__type`. */
  check(role: string): void;
  /** Takes graphql-js's suggestions, which are names in the schema, out of a message for callers who may not. */
  redact(message: string, role: string): string;
};

type IntrospectionOptions = Pick<Config, "graphqlIntrospection" | "anonRole">;

export function makeIntrospectionAccess({
  graphqlIntrospection: allowed,
  anonRole,
}: IntrospectionOptions): IntrospectionAccess {
  const isAllowed = (role: string) => allowed === "all" || (allowed === "authenticated" && role !== anonRole);
  return {
    check(role) {
      if (isAllowed(role)) return;
      throw allowed === "off"
        ? introspectionRefusal("Introspection is switched off.", "GRAPHQL_VALIDATION_FAILED")
        : introspectionRefusal("Sign in to ask about the schema.", "AUTH_REQUIRED");
    },
    redact: (message, role) => (isAllowed(role) ? message : message.replace(/ Did you mean .*\?$/s, "")),
  };
}

function introspectionRefusal(message: string, code: string): GraphqlRefusal {
  return new GraphqlRefusal([new GraphQLError(message, { extensions: { code } })]);
}
