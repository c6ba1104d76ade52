import type { Config } from "#config";
import { refusalOf } from "./graphql-refusal.ts";

/** Decides which roles may use introspection. */
export type IntrospectionAccess = {
  /** Throws unless the role may select `__schema` and `__type`. */
  check(role: string): void;
  /** Removes graphql-js's suggestions, which are names in the schema, from messages to roles without introspection. */
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
        ? refusalOf("Introspection is disabled.", "GRAPHQL_VALIDATION_FAILED")
        : refusalOf("Sign in to use introspection.", "AUTH_REQUIRED");
    },
    redact: (message, role) => (isAllowed(role) ? message : withoutSuggestion(message)),
  };
}

/** Searches without a pattern, which would try every place of a hostile value that repeats the words. */
function withoutSuggestion(message: string): string {
  const start = message.indexOf(" Did you mean ");
  return start >= 0 && message.endsWith("?") ? message.slice(0, start) : message;
}
