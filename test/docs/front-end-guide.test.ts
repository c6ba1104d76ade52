import { execFile } from "node:child_process";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { serveGraphQL } from "../graphql.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { ADDRESS } from "./five-minutes.ts";
import { writeTypedOperations } from "./typed-operations.ts";

/** A code block with a file name. */
const FILE = /^```tsx? (\S+)\n(.*?)^```$/gms;
const PASSWORD = "Tangerine-Boat-7";

const TSC = join(REPOSITORY, "node_modules/.bin/tsc");

const COMPILER_OPTIONS = {
  target: "esnext",
  module: "nodenext",
  lib: ["esnext", "dom"],
  jsx: "react-jsx",
  types: [],
  strict: true,
  skipLibCheck: true,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
  outDir: "out",
};

/** React's types are not installed, so its file is compiled without them. */
const PROJECTS = {
  typed: { compilerOptions: COMPILER_OPTIONS, include: ["*.ts"], exclude: ["codegen.ts"] },
  /** The output of `tsc --init` with the option that the guide adds. */
  init: {
    extends: "./tsconfig.json",
    compilerOptions: { rewriteRelativeImportExtensions: true, noEmit: true },
    include: ["*.ts"],
    exclude: ["codegen.ts"],
  },
  react: { compilerOptions: { ...COMPILER_OPTIONS, noImplicitAny: false }, include: ["*.tsx"] },
};

const RENDER = `
import { ApolloProvider } from "@apollo/client/react";
import { prerenderStatic } from "@apollo/client/react/ssr";
import { renderToString } from "react-dom/server";
import { client } from "./apollo.ts";
import { Articles } from "./Articles.tsx";

export const rendered = async () => {
  const tree = <ApolloProvider client={client}><Articles /></ApolloProvider>;
  return (await prerenderStatic({ tree, renderFunction: renderToString })).result;
};
`;

const folder = useFolder("content-service-front-end-");
const service = useFixture(serveGraphQL);
beforeAll(async () => {
  await symlink(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  await write("package.json", JSON.stringify({ type: "module" }));
  await promisify(execFile)(TSC, ["--init"], { cwd: folder });
  for (const [name, project] of Object.entries(PROJECTS)) await write(`${name}.json`, JSON.stringify(project));
  await write("render.tsx", RENDER);
  const guide = await readFile(join(REPOSITORY, "docs/front-end-guide.md"), "utf8");
  for (const [, name, text] of guide.matchAll(FILE)) {
    await write(
      name!,
      text!.replaceAll(ADDRESS, service.service.url).replace("eyJ…", jwt.sign({ role: "anon" }, SECRET)),
    );
  }
  await write("database.types.ts", (await runCommand("types", [], service.database)).stdout);
  const { config, presetConfig } = (await load("codegen.ts")).default.generates["./src/graphql/"];
  await writeTypedOperations(folder, "operations.ts", { config, presetConfig });
});

const write = (name: string, text: string) => writeFile(join(folder, name), text);
const load = (path: string) => import(pathToFileURL(join(folder, path)).href);
const compile = (project: keyof typeof PROJECTS) =>
  promisify(execFile)(TSC, ["-p", `${project}.json`], { cwd: folder }).then(
    () => "",
    ({ stdout }) => String(stdout),
  );

describe("the front-end guide", () => {
  test("compiles, with the types of the schema and of its operations", async () => {
    expect(await compile("typed")).toBe("");
    expect(await compile("react")).toBe("");
  });

  test("compiles with the strict settings of tsc --init", async () => {
    const { stdout } = await promisify(execFile)(TSC, ["-p", "init.json", "--showConfig"], { cwd: folder });
    expect(JSON.parse(stdout).compilerOptions).toMatchObject({
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
    });
    expect(await compile("init")).toBe("");
  });

  test("has types that reject unknown columns, fields and variables", async () => {
    await write(
      "wrong.ts",
      `import { client } from "./apollo.ts";
import { ARTICLES } from "./operations.ts";
import { supabase } from "./rows.ts";

const { data } = await client.query({ query: ARTICLES, variables: { first: 1 } });
data?.articles.edges[0]?.node.title.toUpperCase();
data?.articles.edges[0]?.node.titel;
await client.query({ query: ARTICLES, variables: { last: 1 } });
(await supabase.from("articles").select("title")).data?.[0]?.titel;
`,
    );
    const errors = await compile("typed");
    await rm(join(folder, "wrong.ts"));
    expect([...errors.matchAll(/^wrong\.ts\((\d+)/gm)].map(([, line]) => Number(line))).toEqual([7, 8, 9]);
  });

  test("signs in, and throws the error of a failed login", async () => {
    const body = JSON.stringify({ name: "Ada", email: "ada@example.org", password: PASSWORD });
    await fetch(`${service.service.url}/auth/register`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
    });
    const { signIn, accessToken, ApiError } = await load("out/session.js");
    const failure = await signIn("ada@example.org", "wrong").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status: 401, code: expect.any(String) });
    expect(await accessToken()).toBeNull();
    await signIn("ada@example.org", PASSWORD);
    expect(jwt.decode(await accessToken())).toMatchObject({ name: "Ada" });
  });

  test("writes, publishes and pages with fetch", async () => {
    const articles = await load("out/articles.js");
    const { id } = await articles.write("By fetch alone", "…");
    expect((await articles.firstPage()).data).toEqual([]);
    await articles.publish(id);
    const page = await articles.firstPage();
    expect(page).toMatchObject({ data: [{ id, title: "By fetch alone", status: "PUBLISHED" }] });
    expect(await articles.nextPage(page)).toBeNull();
    await expect(articles.write("No", "too short")).rejects.toMatchObject({ status: 422 });
  });

  test("reads, writes and watches with supabase-js", async () => {
    const rows = await load("out/rows.js");
    let changes = 0;
    const stop = await rows.watch(() => {
      changes += 1;
    });
    await expect.poll(() => changes).toBe(1);
    const id = await rows.write("By supabase-js", "…");
    await expect.poll(() => changes).toBe(2);
    await rows.publish(id);
    await expect.poll(() => changes).toBe(3);
    expect(await rows.latest()).toMatchObject([{ title: "By supabase-js", author: { name: "Ada" } }, {}]);
    stop();
    await rows.supabase.realtime.disconnect();
  });

  test("shows an optimistic response and receives events with Apollo Client", async () => {
    const { client, publish } = await load("out/apollo.js");
    const { ARTICLES, WRITE, WRITTEN } = await load("out/operations.js");
    const received: unknown[] = [];
    const listening = client
      .subscribe({ query: WRITTEN })
      .subscribe(({ data }: { data: unknown }) => received.push(data));
    await expect.poll(() => service.service.graphql.state().subscriptions).toBe(1);
    const { data } = await client.mutate({
      mutation: WRITE,
      variables: { input: { title: "By Apollo Client", content: "…" } },
    });
    await expect.poll(() => received).toMatchObject([{ onArticleCreated: { title: "By Apollo Client" } }]);
    listening.unsubscribe();

    const { id } = data.createArticle.article;
    const statusInCache = () => client.cache.extract(true)[`Article:${id}`].status;
    expect(statusInCache()).toBe("DRAFT");
    const publishing = publish(id);
    expect(statusInCache()).toBe("PUBLISHED");
    await publishing;
    const first = await client.query({ query: ARTICLES, variables: { first: 2 } });
    expect(first.data.articles).toMatchObject({ totalCount: 3, edges: [{ node: { id } }, {}] });
  });

  test("renders the articles in React", async () => {
    const { rendered } = await load("out/render.js");
    expect(await rendered()).toMatch(/<h2>3<!-- --> articles<\/h2><ul><li>By Apollo Client<!-- -->, by <!-- -->Ada/);
  });

  test("reads and receives events with urql", async () => {
    const { client } = await load("out/urql.js");
    const { ARTICLES, WRITTEN } = await load("out/operations.js");
    const { data } = await client.query(ARTICLES, { first: 1 }).toPromise();
    expect(data.articles).toMatchObject({ totalCount: 3, edges: [{ node: { title: "By Apollo Client" } }] });
    const received: unknown[] = [];
    const listening = client.subscription(WRITTEN, {}).subscribe(({ data }: { data: unknown }) => received.push(data));
    await expect.poll(() => service.service.graphql.state().subscriptions).toBe(1);
    await (await load("out/rows.js")).write("Received by urql", "…");
    await expect.poll(() => received).toMatchObject([{ onArticleCreated: { title: "Received by urql" } }]);
    listening.unsubscribe();
  });

  test("signs out, and gets the rejection of an article from its result", async () => {
    const { signOut, accessToken } = await load("out/session.js");
    const { submit } = await load("out/publish-form.js");
    expect(await submit("Written while signed in", "…")).toMatch(/^\d+$/);
    await signOut();
    expect(await accessToken()).toBeNull();
    await expect(submit("Written by nobody", "…")).rejects.toThrow("Login required: sign in to write an article.");
  });
});
