import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { BY_GRAFAST } from "../graphql/grafast/grafast-stages.ts";
import { serveGraphQL } from "../graphql.ts";

const TABLES = `
  create domain public.tags as text[];
  create domain public.grid as int[][];
  create domain public.board as public.grid;
  create type public.mood as enum ('calm', 'ANGRY');
  create type public.pair as (x int, y int[][]);
  create table public.boards (
    id int generated always as identity primary key, plain int[], cells int[][], cube int[][][], words text[][], times timestamptz[][],
    moods mood[][], pairs pair[][], documents jsonb[][], areas box[][], tagged tags[], field grid, fields grid[], inner_board board,
    large bigint[][], bytes bytea[][]
  );
  create index on public.boards using gin (cells);
  create table public.restored (id int primary key, cells int[], wrong int[][]);
  comment on column public.restored.cells is e'@dimensions 2\\nThe cells.';
  insert into public.restored values (1, '{{1},{2}}', '{1}'), (2, '{1}', '{}');
  create view public.board_views as select id, cells from public.boards;
  grant select, insert, update on public.boards, public.restored, public.board_views to anon;
`;

/** By column, its type, the value that is sent and returned, and the selection in it. */
const VALUES: Readonly<Record<string, readonly [type: string, value: unknown, selection?: string]>> = {
  plain: ["[Int]", [1, 2]],
  cells: [
    "[[Int]]",
    [
      [1, 2],
      [3, 4],
    ],
  ],
  cube: [
    "[[[Int]]]",
    [
      [[1], [2]],
      [[3], [4]],
    ],
  ],
  words: [
    "[[String]]",
    [
      ['a"\\', "NULL"],
      ["", "{,}"],
    ],
  ],
  times: ["[[Time]]", [["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.123456Z"]]],
  moods: ["[[Mood]]", [["calm", "ANGRY"]]],
  pairs: [
    "[[Pair]]",
    [
      [
        { x: 1, y: [[1, 2]] },
        { x: 2, y: null },
      ],
    ],
    "{ x y }",
  ],
  documents: ["[[JSON]]", [[{ a: [1, 2] }, [1]]]],
  areas: ["[[Box]]", [[{ a: { x: 1, y: 1 }, b: { x: 0, y: 0 } }]], "{ a { x y } b { x y } }"],
  tagged: ["[[String]]", [["a", "b"], ["c"]]],
  field: ["[[Int]]", [[1], [2]]],
  fields: ["[[[Int]]]", [[[1, 2]], [[3], [4]]]],
  innerBoard: ["[[Int]]", [[5]]],
  large: ["[[BigInt]]", [["9007199254740993"]]],
  bytes: ["[[Base64EncodedBinary]]", [["AP8="]]],
};
const NAMES = Object.keys(VALUES);
const SELECTION = NAMES.map((name) => `${name} ${VALUES[name]![2] ?? ""}`).join(" ");
const INPUT = Object.fromEntries(NAMES.map((name) => [name, VALUES[name]![1]]));

const compiled = useFixture(() => serveGraphQL({ before: TABLES }));
const planned = useFixture(() => serveGraphQL({ database: compiled.database, options: BY_GRAFAST }));
beforeAll(async () => {
  await compiled.ask("mutation ($input: CreateBoardInput!) { createBoard(input: $input) { id } }", {
    variables: { input: INPUT },
  });
});

type IntrospectedType = { readonly name: string | null; readonly kind: string; readonly ofType: IntrospectedType };
const print = ({ name, kind, ofType }: IntrospectedType): string =>
  name ?? (kind === "LIST" ? `[${print(ofType)}]` : `${print(ofType)}!`);

describe("an array that is declared with several dimensions", () => {
  test("is a list of lists", async () => {
    const deep = "name kind ofType { name kind ofType { name kind ofType { name kind } } }";
    const { data } = await compiled.ask(`{ __type(name: "Board") { fields { name type { ${deep} } } } }`);
    const fields: { name: string; type: IntrospectedType }[] = data.__type.fields;
    const types = Object.fromEntries(fields.map(({ name, type }) => [name, print(type)]));
    expect(types).toEqual({ id: "ID!", ...Object.fromEntries(NAMES.map((name) => [name, VALUES[name]![0]])) });
  });

  test.each(["compiled", "planned"])("is written and returned as it was sent, %s", async (which) => {
    const graphql = which === "compiled" ? compiled : planned;
    const query = `mutation ($input: CreateBoardInput!) { createBoard(input: $input) { ${SELECTION} } }`;
    const made = await graphql.ask(query, { variables: { input: INPUT } });
    expect([made.errors, made.data?.createBoard]).toEqual([undefined, INPUT]);
    expect((await graphql.ask(`{ board(id: 1) { ${SELECTION} } }`)).data.board).toEqual(INPUT);
    for (const name of NAMES) {
      const read = await graphql.ask(`{ board(id: 1) { ${name} ${VALUES[name]![2] ?? ""} } }`);
      expect([read.errors, read.data.board]).toEqual([undefined, { [name]: INPUT[name] }]);
    }
  });

  test.each(["compiled", "planned"])("may be null, empty and have nulls, %s", async (which) => {
    const graphql = which === "compiled" ? compiled : planned;
    const [row] = await compiled.sql<{ id: number }>(
      `insert into public.boards (cells, words, times, cube) values ('{}', null, '{}', '{{{1,null}}}') returning id`,
    );
    const { data, errors } = await graphql.ask(`{ board(id: ${row!.id}) { cells words times cube } }`);
    expect([errors, data.board]).toEqual([undefined, { cells: [], words: null, times: [], cube: [[[1, null]]] }]);
  });

  test.each(["compiled", "planned"])("is filtered by values and by items, %s", async (which) => {
    const graphql = which === "compiled" ? compiled : planned;
    const ids = async (argument: string) => {
      const { data, errors } = await graphql.ask(`{ boards(first: 1, ${argument}) { edges { node { id } } } }`);
      return errors ?? data.boards.edges.map(({ node }: { node: { id: string } }) => node.id);
    };
    expect(await ids("where: { cells: { eq: [[1, 2], [3, 4]] } }")).toEqual(["1"]);
    expect(await ids("where: { cells: { eq: [[1, 2, 3, 4]] } }")).toEqual([]);
    expect(await ids('where: { words: { cs: [["{,}"]] } }')).toEqual(["1"]);
    expect(await ids("where: { field: { ov: [[2, 9]] } }")).toEqual(["1"]);
    expect(await ids("filter: { cell: 4 }")).toEqual(["1"]);
    expect(await ids("filter: { cell: 5 }")).toEqual([]);
  });

  test("of other lengths is refused", async () => {
    const { errors } = await compiled.ask("mutation { createBoard(input: { cells: [[1], [2, 3]] }) { id } }");
    expect(errors).toMatchObject([{ message: /malformed array literal/, extensions: { code: "VALIDATION_ERROR" } }]);
  });
});

test.each(["compiled", "planned"])(
  "an array with other dimensions than declared is an error of its field, %s",
  async (which) => {
    const graphql = which === "compiled" ? compiled : planned;
    expect((await graphql.ask("{ restored(id: 1) { cells } }")).data).toEqual({ restored: { cells: [[1], [2]] } });
    expect((await graphql.ask("{ restored(id: 2) { wrong } }")).data).toEqual({ restored: { wrong: [] } });
    for (const [id, name, message] of [
      [2, "cells", /has one dimension, .* declared with 2 dimensions/],
      [1, "wrong", /has one dimension, .* declared with 2 dimensions/],
    ]) {
      const { data, errors } = await graphql.ask(`{ restored(id: ${id}) { id ${name} } }`);
      expect(data).toEqual({ restored: { id: String(id), [String(name)]: null } });
      expect(errors).toMatchObject([
        { message: expect.stringMatching(message as RegExp), extensions: { code: "VALIDATION_ERROR" } },
      ]);
    }
    await compiled.sql("insert into public.boards (plain, times) values ('{{1},{2}}', null)");
    const { data, errors } = await graphql.ask("{ boards(last: 1) { edges { node { plain } } } }");
    expect(data.boards.edges).toEqual([{ node: { plain: null } }]);
    expect(errors).toMatchObject([{ message: expect.stringMatching(/has 2 dimensions, .* @dimensions 2/) }]);
  },
);
