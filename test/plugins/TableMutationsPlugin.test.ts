import { type GraphQLArgument, isInputObjectType, isObjectType } from "grafast/graphql";
import { beforeAll, describe, expect, test } from "vitest";
import { admin, alice, anonymous, bob, SEED } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({ sql: SEED });
const ask: typeof generated.ask = (...question) => generated.ask(...question);
const read: typeof generated.read = (...question) => generated.read(...question);
const owner = (text: string) => generated.owner.query(text);

function fieldsOf(typeName: string): Record<string, string> {
  const type = generated.schema.getType(typeName);
  if (!isObjectType(type) && !isInputObjectType(type)) return {};
  return Object.fromEntries(
    Object.entries(type.getFields()).map(([name, field]) => {
      const args =
        "args" in field ? field.args.map((argument: GraphQLArgument) => `${argument.name}: ${argument.type}`) : [];
      return [name, `${args.length > 0 ? `(${args.join(", ")}) ` : ""}${field.type}`];
    }),
  );
}

const TASKS = `
  create table public.tasks (
    id         bigint generated always as identity primary key,
    owner_id   bigint not null default auth.uid() constraint tasks_owner_id_fkey references public.users on delete cascade,
    article_id bigint references public.articles on delete set null,
    title      text not null constraint tasks_title_key unique constraint tasks_title_length check (length(title) >= 3),
    size       integer not null default 1,
    done       boolean not null default false,
    tags       text[] not null default '{}',
    due_at     timestamptz,
    words      integer not null generated always as (length(title)) stored,
    secret     text,
    created_at timestamptz not null default now()
  );
  create index tasks_of_owner on public.tasks (owner_id, id);
  create index tasks_of_article on public.tasks (article_id);
  alter table public.tasks enable row level security;
  create policy select_known on public.tasks for select to authenticated using (true);
  create policy write_own on public.tasks to authenticated using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
  create policy admin_all on public.tasks to admin using (true) with check (true);
  grant select (id, owner_id, article_id, title, size, done, tags, due_at, words, created_at) on public.tasks to authenticated;
  grant insert (article_id, title, size, tags, due_at), update (title, size, done, tags, due_at, article_id), delete on public.tasks to authenticated;
  grant all on public.tasks to service_role;
  comment on table public.tasks is e'@order done, due_at desc\\nWhat is to be done.';
  comment on column public.tasks.size is 'In hours.';
`;

describe("a table that is added by SQL", () => {
  test("has no fields before", () => {
    expect(generated.schema.getType("Task")).toBeUndefined();
  });

  test("has all fields and mutations afterwards", async () => {
    await owner(TASKS);
    await generated.renew();
    expect(fieldsOf("Task")).toEqual({
      id: "ID!",
      title: "String!",
      size: "Int!",
      done: "Boolean!",
      tags: "[String]!",
      dueAt: "Time",
      words: "Int!",
      createdAt: "Time!",
      owner: "User!",
      ownerId: "ID!",
      article: "Article",
      articleId: "ID",
    });
    expect(fieldsOf("Query")).toMatchObject({
      task: "(id: ID!) Task",
      tasks:
        "(first: Int, after: String, last: Int, before: String, ownerId: ID, articleId: ID, title: String, filter: TaskFilterInput, where: TaskWhereInput, orderBy: [TaskOrderByInput!]) TaskConnection!",
    });
    expect(fieldsOf("Mutation")).toMatchObject({
      createTask: "(input: CreateTaskInput!) Task!",
      updateTask: "(id: ID!, input: UpdateTaskInput!) Task!",
      deleteTask: "(id: ID!) Boolean!",
    });
    expect(fieldsOf("User")).toMatchObject({
      tasks: "(limit: Int, offset: Int, where: TaskWhereInput, orderBy: [TaskOrderByInput!]) [Task!]!",
    });
    expect(fieldsOf("Article")).toMatchObject({
      tasks: "(limit: Int, offset: Int, where: TaskWhereInput, orderBy: [TaskOrderByInput!]) [Task!]!",
    });
  });

  test("has the columns that clients were granted, and requires those without a default", () => {
    expect(fieldsOf("CreateTaskInput")).toEqual({
      articleId: "ID",
      title: "String!",
      size: "Int",
      tags: "[String!]",
      dueAt: "Time",
    });
    expect(fieldsOf("UpdateTaskInput")).toEqual({
      articleId: "ID",
      title: "String",
      size: "Int",
      done: "Boolean",
      tags: "[String!]",
      dueAt: "Time",
    });
  });

  test("is described by its comments", () => {
    expect(generated.schema.getType("Task")?.description).toBe("What is to be done.");
    const input = generated.schema.getType("CreateTaskInput");
    expect(isInputObjectType(input) && input.getFields().size?.description).toBe("In hours.");
  });
});

describe("its rows", () => {
  const CREATE =
    "mutation ($input: CreateTaskInput!) { createTask(input: $input) { id title size done tags dueAt words owner { name } article { id title } } }";
  const UPDATE =
    "mutation ($id: ID!, $input: UpdateTaskInput!) { updateTask(id: $id, input: $input) { id title size tags article { id } } }";
  let id: string;

  beforeAll(async () => {
    id = (
      await read(alice, CREATE, {
        input: { title: "Task of Alice", articleId: 1, tags: ["a", "b"], dueAt: "2026-11-20T10:00:00+05:30" },
      })
    ).createTask.id;
  });

  test("are created with the given values, and SQL's defaults for the rest", async () => {
    expect(await read(bob, CREATE, { input: { title: "Of Bob" } })).toEqual({
      createTask: {
        id: expect.any(String),
        title: "Of Bob",
        size: 1,
        done: false,
        tags: [],
        dueAt: null,
        words: 6,
        owner: { name: "Bob" },
        article: null,
      },
    });
    expect(
      await read(alice, "query ($id: ID!) { task(id: $id) { title tags dueAt owner { name } article { title } } }", {
        id,
      }),
    ).toEqual({
      task: {
        title: "Task of Alice",
        tags: ["a", "b"],
        dueAt: "2026-11-20T04:30:00.000Z",
        owner: { name: "Alice" },
        article: { title: "Alice writes" },
      },
    });
  });

  test("are changed in the given fields only", async () => {
    expect(await read(alice, UPDATE, { id, input: { size: 5, tags: ["c"] } })).toMatchObject({
      updateTask: { title: "Task of Alice", size: 5, tags: ["c"], article: { id: "1" } },
    });
    expect(await read(alice, UPDATE, { id, input: { articleId: null } })).toMatchObject({
      updateTask: { size: 5, article: null },
    });
    expect(await read(alice, UPDATE, { id, input: { articleId: 1 } })).toMatchObject({
      updateTask: { article: { id: "1" } },
    });
  });

  test("are changed and deleted by roles that the policies allow", async () => {
    expect((await ask(bob, UPDATE, { id, input: { size: 9 } })).faults).toMatchObject([
      { code: "RESOURCE_NOT_FOUND", path: "updateTask" },
    ]);
    expect(await read(bob, `mutation { deleteTask(id: ${id}) }`)).toEqual({ deleteTask: false });
    expect(await read(alice, `{ task(id: ${id}) { size } }`)).toEqual({ task: { size: 5 } });
    expect(await read(admin, UPDATE, { id, input: { size: 6 } })).toMatchObject({ updateTask: { size: 6 } });
  });

  test("are hidden from roles without privileges", async () => {
    expect((await ask(anonymous, `{ task(id: ${id}) { title } }`)).faults).toMatchObject([
      { code: "PERMISSION_DENIED" },
    ]);
    expect((await ask(anonymous, CREATE, { input: { title: "Not mine" } })).faults).toMatchObject([
      { code: "PERMISSION_DENIED" },
    ]);
    expect((await ask(anonymous, `mutation { deleteTask(id: ${id}) }`)).faults).toMatchObject([
      { code: "PERMISSION_DENIED" },
    ]);
  });

  test.each([
    ["no column", {}],
    ["an id that is none", { articleId: "abc" }],
    ["the id of nothing", { articleId: 999 }],
    ["null where none may be", { title: null }],
    ["what breaks a rule", { title: "ab" }],
  ])("are not changed to %s", async (what, input) => {
    const { faults } = await ask(alice, UPDATE, { id, input });
    expect(faults).toMatchObject([{ code: what === "the id of nothing" ? "RESOURCE_CONFLICT" : "VALIDATION_ERROR" }]);
  });

  test("that a trigger discards are not created", async () => {
    await owner(`
      create function content_service.leave_out() returns trigger language plpgsql as 'begin return null; end';
      create trigger leave_out before insert on public.tasks for each row when (NEW.size = 0) execute function content_service.leave_out();
    `);
    for (const selection of ["{ id }", "{ dueAt }", "{ __typename }"]) {
      const source = `mutation { createTask(input: { title: "Left out", size: 0 }) ${selection} }`;
      expect((await ask(alice, source)).faults).toMatchObject([{ code: "RESOURCE_NOT_FOUND", path: "createTask" }]);
    }
    await owner("drop function content_service.leave_out cascade");
  });

  test("are unique by the table's constraints", async () => {
    expect((await ask(bob, CREATE, { input: { title: "Task of Alice" } })).faults).toMatchObject([
      { code: "RESOURCE_CONFLICT", path: "createTask" },
    ]);
  });

  test.each(["999", "abc"])("that do not exist (%s) cannot be changed; deleting them is false", async (missing) => {
    expect((await ask(alice, UPDATE, { id: missing, input: { size: 9 } })).faults).toMatchObject([
      { code: "RESOURCE_NOT_FOUND" },
    ]);
    expect(await read(alice, "mutation ($id: ID!) { deleteTask(id: $id) }", { id: missing })).toEqual({
      deleteTask: false,
    });
  });

  test("are in the order of the table's comment, then by key", async () => {
    await owner(`
      delete from public.tasks;
      insert into public.tasks (owner_id, title, done, due_at) values
        (1, 'one', true, '2026-01-01'), (1, 'two', false, '2026-01-01'), (1, 'three', false, null), (1, 'four', false, '2026-02-01'), (1, 'five', false, '2026-01-01');
    `);
    const { rows } = await owner("select title from public.tasks order by done, due_at desc, id desc");
    const titles = rows.map(({ title }) => title);
    expect(titles).toEqual(["three", "four", "five", "two", "one"]);

    const seen: string[] = [];
    let after: string | null = null;
    for (;;) {
      const {
        tasks,
      }: { tasks: { edges: { cursor: string; node: { title: string } }[]; pageInfo: { hasNextPage: boolean } } } =
        await read(
          alice,
          "query ($after: String) { tasks(first: 1, after: $after) { edges { cursor node { title } } pageInfo { hasNextPage } } }",
          { after },
        );
      seen.push(...tasks.edges.map(({ node }) => node.title));
      if (!tasks.pageInfo.hasNextPage) break;
      after = tasks.edges[0]!.cursor;
    }
    expect(seen).toEqual(titles);
    expect(await read(alice, "{ me { tasks(limit: 2, offset: 1) { title } } }")).toEqual({
      me: { tasks: [{ title: "four" }, { title: "five" }] },
    });
  });

  test("are deleted", async () => {
    const { tasks } = await read(alice, "{ tasks(first: 1) { edges { node { id } } } }");
    const gone = tasks.edges[0].node.id;
    expect(await read(alice, `mutation { deleteTask(id: ${gone}) }`)).toEqual({ deleteTask: true });
    expect(await read(alice, `{ task(id: ${gone}) { id } }`)).toEqual({ task: null });
    expect(await read(alice, `mutation { deleteTask(id: ${gone}) }`)).toEqual({ deleteTask: false });
  });
});

describe("the schema follows", () => {
  test("a column, a grant and a function", async () => {
    await owner(`
      alter table public.tasks add column note text;
      create function public.update_task(id bigint, reason text) returns public.tasks language sql set search_path = ''
        as $$ update public.tasks set note = update_task.reason where tasks.id = update_task.id returning * $$;
      grant execute on function public.update_task to authenticated;
      revoke delete on public.tasks from authenticated;
    `);
    await generated.renew();
    expect(fieldsOf("Task")).not.toHaveProperty("note");
    expect(fieldsOf("Mutation")).toMatchObject({ updateTask: "(id: ID!, input: UpdateTaskInput!) Task!" });
    expect(fieldsOf("UpdateTaskInput")).toEqual({ reason: "String!" });
    expect(fieldsOf("Mutation")).not.toHaveProperty("deleteTask");

    await owner("grant select (note) on public.tasks to authenticated");
    await generated.renew();
    expect(fieldsOf("Task")).toMatchObject({ note: "String" });
  });

  test("revoked privileges", async () => {
    await owner("drop table public.tasks cascade");
    await generated.renew();
    expect(generated.schema.getType("Task")).toBeUndefined();
    expect(fieldsOf("User")).not.toHaveProperty("tasks");
  });
});

describe("the table of translations, with a key of two columns", () => {
  const key = `articleId: 1, language: "fr"`;

  test("is written by the author of the article", async () => {
    const create = (title: string) =>
      `mutation { createArticleTranslation(input: { ${key}, title: "${title}" }) { title article { title(language: "fr") } } }`;
    expect((await ask(bob, create("Alice écrit"))).faults).toMatchObject([{ code: "PERMISSION_DENIED" }]);
    expect(await read(alice, create("Alice écrit"))).toEqual({
      createArticleTranslation: { title: "Alice écrit", article: { title: "Alice écrit" } },
    });
    expect((await ask(alice, create("Encore"))).faults).toMatchObject([{ code: "RESOURCE_CONFLICT" }]);
    expect(
      await read(
        alice,
        `mutation { updateArticleTranslation(${key}, input: { title: "Alice écrivit" }) { articleId language title } }`,
      ),
    ).toEqual({
      updateArticleTranslation: { articleId: "1", language: "fr", title: "Alice écrivit" },
    });
    expect(await read(anonymous, `{ articleTranslation(${key}) { title } }`)).toEqual({
      articleTranslation: { title: "Alice écrivit" },
    });
    expect(await read(bob, `mutation { deleteArticleTranslation(${key}) }`)).toEqual({
      deleteArticleTranslation: false,
    });
    expect(await read(alice, `mutation { deleteArticleTranslation(${key}) }`)).toEqual({
      deleteArticleTranslation: true,
    });
  });
});
