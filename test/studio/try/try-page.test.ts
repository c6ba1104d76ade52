import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { describeInBrowser, openStudio } from "../studio.ts";

const SCHEMA = `
  create table public.films (
    id bigint generated always as identity primary key, title text not null, year integer, rating numeric(40, 20));
  comment on table public.films is E'@behavior +list\\nFilms that were shown.';
  insert into public.films (title, year, rating) values ('<b>Alien</b>', 1979, 0.12345678901234567890), ('Brazil', 1985, null);
  create table public.secrets (id integer primary key);
  create function public.films_of(since integer) returns setof public.films language sql stable
    as 'select * from public.films where year >= since';
  create function public.loud_title(film public.films) returns text language sql stable return upper(film.title);
  create function public.premiere(film public.films) returns text language sql volatile return 'premiere of ' || film.title;
  alter table public.films replica identity full;
  alter table public.films enable row level security;
  create policy everybody on public.films using (true) with check (true);
  grant select, insert, update, delete on public.films to authenticated, admin;
  grant execute on all functions in schema public to authenticated, admin;
  revoke all on public.secrets from anon, authenticated, admin;
`;

describeInBrowser("Try", () => {
  let page: Page;
  const studio = useFixture(() => openStudio({ schema: SCHEMA, path: "/studio/try" }));
  beforeAll(async () => {
    page = studio.page;
  });

  const show = (path: string) =>
    page.evaluate((address) => {
      history.pushState(null, "", address);
      dispatchEvent(new PopStateEvent("popstate"));
    }, `/studio/try/${path}`);
  const run = async () => {
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.locator(".try-response .badge").waitFor();
  };
  const response = () => page.getByRole("group", { name: "Body of the response" }).textContent();
  const code = () => page.getByRole("group", { name: "The request to copy" }).textContent();

  test("lists the tables and functions that the role may use", async () => {
    const list = page.getByRole("navigation", { name: "Tables and functions" });
    await list.getByRole("link", { name: "films", exact: true }).waitFor();
    const names = (await list.getByRole("link").allTextContents()).map((name) => name.trim());
    expect(names).toContain("films_of(since integer)");
    expect(names).not.toContain("secrets");
    await page.getByLabel("Filter tables and functions").fill("loud");
    await expect.poll(() => list.getByRole("link").count()).toBe(1);
    await page.getByLabel("Filter tables and functions").fill("");
  });

  test("runs a read of the table interface and shows status, headers, duration, and all digits as text", async () => {
    await page.getByRole("link", { name: "films", exact: true }).click();
    await page.getByText("Films that were shown.").waitFor();
    await run();
    expect(await page.locator(".try-response .badge").textContent()).toBe("200 OK");
    expect(await page.getByText(/^\d+ ms, /).count()).toBe(1);
    expect(await response()).toContain("0.12345678901234567890");
    expect(await response()).toContain("<b>Alien</b>");
    await page.getByRole("tab", { name: "Headers" }).click();
    expect(await page.getByRole("group", { name: "Headers of the response" }).textContent()).toContain(
      "content-range: 0-1/*",
    );
    await page.getByRole("tab", { name: "Body" }).click();
  });

  test("what is edited is what runs and what is copied, as curl and as supabase-js", async () => {
    await page.getByLabel("Path and query").fill("/rest/v1/films?select=title&year=gt.1980");
    await run();
    await expect.poll(response).not.toContain("Alien");
    expect(await code()).toContain("films?select=title&year=gt.1980'");
    await page.getByRole("tab", { name: "supabase-js" }).click();
    expect(await code()).toContain('.select("title")\n  .gt("year", 1980)');
  });

  test("an error of the service is a response like others", async () => {
    await page.getByLabel("Path and query").fill("/rest/v1/films?select=nothing");
    await run();
    await expect.poll(response).toContain('"code": "42703"');
  });

  test("inserts a row, and asks before it changes or deletes one", async () => {
    await page.getByLabel("Operation").selectOption("insert");
    await page.getByLabel("Body", { exact: true }).fill('{"title": "Casablanca", "year": 1942}');
    await run();
    await expect.poll(response).toContain("Casablanca");
    await page.getByLabel("Operation").selectOption("delete");
    await page.getByLabel("Path and query").fill("/rest/v1/films?title=eq.Casablanca");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Run this request?" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await studio.sql("select from films where title = 'Casablanca'")).toHaveLength(1);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await dialog.getByRole("button", { name: "Run" }).click();
    await expect.poll(response).toContain("Casablanca");
    expect(await studio.sql("select from films where title = 'Casablanca'")).toHaveLength(0);
  });

  test("makes GraphQL operations from the schema of the role, and runs them", async () => {
    await show("table/public/films?form=graphql");
    const document = page.getByLabel("GraphQL document");
    await expect.poll(() => document.inputValue()).toMatch(/query Read \{\n {2}films\((first|limit): 5\)/);
    await run();
    await expect.poll(response).toContain("Brazil");
    await page.getByLabel("Operation").selectOption("insert");
    await expect.poll(() => document.inputValue()).toContain("createFilm(input: $input)");
    await page.getByLabel("Variables").fill('{"input": {"title": "Dune"}}');
    await run();
    await expect.poll(response).toContain("createFilm");
    expect(await studio.sql("delete from films where title = 'Dune' returning id")).toHaveLength(1);
  });

  test("runs the request of the plain REST interface", async () => {
    await show("table/public/films?form=rest");
    expect(await page.getByLabel("Path and query").inputValue()).toBe("/api/v1/films?limit=5");
    await run();
    await expect.poll(response).toContain("Brazil");
  });

  test("calls a function, reads a computed column, and runs an action of a row", async () => {
    await page.getByRole("link", { name: "films_of(since integer)" }).click();
    await page.getByLabel("Body", { exact: true }).fill('{"since": 1980}');
    await run();
    await expect.poll(response).toContain("Brazil");
    await page.getByRole("link", { name: /^loud_title/ }).click();
    expect(await page.getByLabel("Path and query").inputValue()).toBe("/rest/v1/films?select=id,loud_title&limit=5");
    await run();
    await expect.poll(response).toContain("BRAZIL");
    await page.getByRole("link", { name: /^premiere/ }).click();
    await page.getByRole("tab", { name: "Plain REST" }).click();
    expect(await page.getByLabel("Path and query").inputValue()).toBe("/api/v1/films/1/premiere");
    await run();
    await expect.poll(response).toContain("premiere of");
  });

  test("watches the changes of a table", async () => {
    await show("table/public/films?operation=watch");
    await page.getByRole("button", { name: "Start watching" }).click();
    await page.getByText("Watching. Change a row to see its event.").waitFor();
    await studio.sql("update films set year = 1986 where title = 'Brazil'");
    const event = page.getByRole("group", { name: /^UPDATE at / });
    await event.waitFor();
    expect(await event.textContent()).toMatch(/"old_record": \{[^}]*"year": "1985"/);
    await page.getByRole("button", { name: "Stop watching" }).click();
    await page.getByRole("button", { name: "Start watching" }).waitFor();
  });

  test("shows broadcasts and presence of a channel, and sends both", async () => {
    await page.getByRole("link", { name: "Channel", exact: true }).click();
    await page.getByLabel("Channel", { exact: true }).fill("lobby");
    await page.getByRole("button", { name: "Join" }).click();
    await page.getByText("Joined.").waitFor();
    await page.getByLabel("Payload (JSON)").fill('{"page": "first"}');
    await page.getByRole("button", { name: "Track", exact: true }).click();
    const present = page.getByRole("region", { name: "Present" });
    await present.getByText('{"page":"first"}').waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const broadcast = page.getByRole("group", { name: /^broadcast at / });
    await broadcast.waitFor();
    expect(await broadcast.textContent()).toMatch(/"event": "message".*"page": "first"/s);
    await page.getByRole("button", { name: "Untrack" }).click();
    await present.getByText("Nobody is present.").waitFor();
    await page.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("button", { name: "Join" }).waitFor();
  });

  test("a link shows the same table, operation and interface again", async () => {
    const other = await studio.open("/studio/try/table/public/films?operation=update&form=supabase-js");
    await other.getByRole("tab", { name: "supabase-js", selected: true }).waitFor();
    expect(await other.getByLabel("Method").inputValue()).toBe("PATCH");
    await other.close();
  });
});
