import type { Config } from "../../engine/config/config.ts";

export type Door = {
  readonly path: string;
  readonly title: string;
  readonly about: string;
  /** The table whose comment puts it there. */
  readonly root?: string;
};

/** What can be opened in a browser here. */
export function doorsOf({ graphqlExplorer }: Config, { canSignIn }: { readonly canSignIn: boolean }): Door[] {
  return [
    ...(graphqlExplorer ? [{ path: "/graphiql", title: "GraphiQL", about: "ask, change and subscribe by hand" }] : []),
    { path: "/docs", title: "API reference", about: "the REST interfaces, to read and to try" },
    { path: "/docs/errors", title: "Errors", about: "every code, and what to do about it" },
    ...(canSignIn ? [{ path: "/auth/sign-in", title: "Sign in", about: "with a password or a provider" }] : []),
    { path: "/users", title: "Users", about: "the conventional interface, as it answers", root: "users" },
  ];
}
