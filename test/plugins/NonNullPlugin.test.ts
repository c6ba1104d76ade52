import { isObjectType } from "grafast/graphql";
import { beforeAll, describe, expect, test } from "vitest";
import { alice, SEED } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

/** The type that the field to a table has with the policies on that table. */
const CASES: readonly [table: string, policies: string, type: string][] = [
  ["bare", "", "Bare!"],
  [
    "open",
    "alter table public.open enable row level security; create policy all_of_it on public.open for select using (true)",
    "Open!",
  ],
  [
    "open_to_all_verbs",
    "alter table public.open_to_all_verbs enable row level security; create policy a on public.open_to_all_verbs using (true)",
    "OpenToAllVerb!",
  ],
  ["closed", "alter table public.closed enable row level security", "Closed"],
  [
    "own",
    "alter table public.own enable row level security; create policy own on public.own for select using (id = (select auth.uid()))",
    "Own",
  ],
  [
    "by_role",
    "alter table public.by_role enable row level security; create policy a on public.by_role for select to authenticated using (true)",
    "ByRole",
  ],
  [
    "restricted",
    `alter table public.restricted enable row level security; create policy a on public.restricted for select using (true);
     create policy b on public.restricted as restrictive for select using (id > 0)`,
    "Restricted",
  ],
  [
    "write_open",
    "alter table public.write_open enable row level security; create policy a on public.write_open for update using (true)",
    "WriteOpen",
  ],
  [
    "falsy",
    "alter table public.falsy enable row level security; create policy a on public.falsy for select using (false)",
    "Falsy",
  ],
];

const generated = useGeneratedSchema({
  sql: `${SEED}
    ${CASES.map(
      ([table, policies]) => `
        create table public.${table} (id int primary key);
        grant select on public.${table} to authenticated;
        ${policies};
        create table public.refers_to_${table} (
          id int primary key, it int not null references public.${table}, perhaps int references public.${table}
        );
        grant select on public.refers_to_${table} to authenticated;`,
    ).join("")}
    create function public.gaps() returns setof int stable language sql as 'select * from (values (1), (null)) as gap';
    create function public.make_gaps() returns setof text language sql as $$ select * from (values ('a'), (null)) as gap $$;
    create function public.no_gaps() returns setof int stable language sql as 'select 1';
    comment on function public.no_gaps is '@notNull';
    grant execute on function public.gaps, public.make_gaps, public.no_gaps to authenticated;
    create table public.insists (id int primary key, own_id int not null constraint insists_own_id_fkey references public.own);
    create table public.doubts (id int primary key, bare_id int not null constraint doubts_bare_id_fkey references public.bare);
    grant select on public.insists, public.doubts to authenticated;
    comment on constraint insists_own_id_fkey on public.insists is '@notNull';
    comment on constraint doubts_bare_id_fkey on public.doubts is '@nullable';
    create table public.unchecked (id int primary key, bare_id int not null, note text);
    insert into public.bare values (1);
    insert into public.unchecked values (1, 404, null), (2, 1, 'two');
    alter table public.unchecked add foreign key (bare_id) references public.bare not valid,
      add constraint note_is_there not null note not valid;
    create table public.unenforced (id int primary key, bare_id int not null references public.bare not enforced);
    create domain public.number as int not null;
    create table public.counted (id int primary key, n public.number, m public.number[]);
    insert into public.counted values (1, 5, '{6}');
    create view public.guesses with (security_invoker = true) as
      select bare.id, counted.n, counted.m from (values (1), (2)) as bare (id) left join public.counted using (id);
    create function public.guess() returns table (id int, n public.number) stable language sql as 'select id, n from public.guesses';
    create function public.numbers() returns setof public.number stable language sql as 'select n from public.guesses';
    grant select on public.counted, public.guesses to authenticated;
    grant execute on function public.guess, public.numbers to authenticated;
    create table public.elders (id int primary key, bare_id int not null references public.bare);
    create table public.heirs () inherits (public.elders);
    insert into public.heirs values (1, 404);
    create table public.wholes (id int primary key, bare_id int not null references public.bare) partition by list (id);
    create table public.pieces partition of public.wholes default;
    grant select on public.unchecked, public.unenforced, public.elders, public.wholes to authenticated;
  `,
});

function typeOf(typeName: string, field: string): string {
  const type = generated.schema.getType(typeName);
  return isObjectType(type) ? String(type.getFields()[field]?.type) : "no such type";
}

describe("the target of a required foreign key", () => {
  test.each(CASES)("in a table %s with policies: %s; is %s", (_table, _policies, type) => {
    const name = `RefersTo${type.replace("!", "")}`;
    expect(typeOf(name, "it")).toBe(type);
    expect(typeOf(name, "perhaps")).toBe(type.replace("!", ""));
  });

  test("may be declared not null, or nullable", () => {
    expect(typeOf("Insist", "own")).toBe("Own!");
    expect(typeOf("Doubt", "bare")).toBe("Bare");
  });
});

describe("a constraint that Postgres has not validated", () => {
  test("is nullable: the row that a key references, and a column", async () => {
    expect(typeOf("Unchecked", "bare")).toBe("Bare");
    expect(typeOf("Unchecked", "note")).toBe("String");
    expect(typeOf("Unenforced", "bare")).toBe("Bare");
    expect(await generated.read(alice, "{ uncheckeds { edges { node { bareId bare { id } note } } } }")).toEqual({
      uncheckeds: {
        edges: [
          { node: { bareId: "404", bare: null, note: null } },
          { node: { bareId: "1", bare: { id: "1" }, note: "two" } },
        ],
      },
    });
  });

  test("is nullable for a NOT NULL domain outside of a table", async () => {
    expect(typeOf("Counted", "n")).toBe("Number!");
    const query = "{ counteds { edges { node { n } } } guesses { id n m } guess { id n } numbers }";
    expect(await generated.read(alice, query)).toEqual({
      counteds: { edges: [{ node: { n: 5 } }] },
      guesses: [
        { id: "1", n: 5, m: [6] },
        { id: "2", n: null, m: null },
      ],
      guess: [
        { id: 1, n: 5 },
        { id: 2, n: null },
      ],
      numbers: [5, null],
    });
  });

  test("is nullable in a table whose children have no such key, and not null in a partitioned one", async () => {
    expect(typeOf("Elder", "bare")).toBe("Bare");
    expect(typeOf("Whole", "bare")).toBe("Bare!");
    expect(await generated.read(alice, "{ elders { edges { node { bareId bare { id } } } } }")).toEqual({
      elders: { edges: [{ node: { bareId: "404", bare: null } }] },
    });
  });
});

describe("a row that a policy hides", () => {
  beforeAll(async () => {
    await generated.owner.query(
      "insert into public.own values (1), (2); insert into public.refers_to_own (id, it) values (1, 1), (2, 2)",
    );
  });

  test("is null in its references, and nothing else is lost", async () => {
    expect(await generated.read(alice, "{ refersToOwns { edges { node { id it { id } } } } }")).toEqual({
      refersToOwns: {
        edges: [{ node: { id: "1", it: { id: "1" } } }, { node: { id: "2", it: null } }],
      },
    });
  });
});

describe("a set of values that a function returns", () => {
  test("is nullable for each value, unless a smart tag denies that", async () => {
    expect(typeOf("Query", "gaps")).toBe("[Int]!");
    expect(typeOf("Mutation", "makeGaps")).toBe("[String]!");
    expect(typeOf("Query", "noGaps")).toBe("[Int!]!");
    expect(await generated.read(alice, "{ gaps }")).toEqual({ gaps: [1, null] });
    expect(await generated.read(alice, "mutation { makeGaps }")).toEqual({ makeGaps: ["a", null] });
  });
});
