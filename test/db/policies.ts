import type pg from "pg";

/** The number of rows that a statement reaches, or the SQLSTATE with which it is refused. */
type Outcome = number | string;

export type Attempt = {
  readonly table: string;
  readonly verb: string;
  readonly what: string;
  readonly statement: string;
  readonly anon: Outcome;
  readonly alice: Outcome;
  readonly admin: Outcome;
  readonly service: Outcome;
};

/** Attempts at the table interface, with USERS_ACCESS=open. Alice is user 1, Bob user 2; each has the article of that id. */
export const OPEN_ATTEMPTS = readMatrix(`
public.users                                                                                            | anon  | alice | admin | service
select everybody     | select from public.users                                                         | 3     | 3     | 3     | 3
insert a user        | insert into public.users (name, email) values ('D', 'd@example.org')             | 42501 | 42501 | 1     | 1
insert a chosen id   | insert into public.users (id, name, email) values (9, 'D', 'd@example.org')      | 42501 | 42501 | 42501 | 1
update oneself       | update public.users set name = 'A' where id = 1                                  | 0     | 1     | 1     | 1
update another       | update public.users set name = 'B' where id = 2                                  | 0     | 0     | 1     | 1
update created_at    | update public.users set created_at = now() where id = 1                          | 42501 | 42501 | 42501 | 1
delete oneself       | delete from public.users where id = 1                                            | 0     | 1     | 1     | 1
delete another       | delete from public.users where id = 2                                            | 0     | 0     | 1     | 1

public.articles                                                                                         | anon  | alice | admin | service
select everybody's   | select from public.articles                                                      | 2     | 2     | 2     | 2
insert one's own     | insert into public.articles (title, content) values ('Five!', '')                | 42501 | 1     | 1     | 23502
insert another's     | insert into public.articles (title, content, author_id) values ('Five!', '', 2)  | 42501 | 42501 | 42501 | 1
update one's own     | update public.articles set title = 'Five!' where id = 1                          | 42501 | 1     | 1     | 1
update another's     | update public.articles set title = 'Five!' where id = 2                          | 42501 | 0     | 1     | 1
update the author    | update public.articles set author_id = 2 where id = 1                            | 42501 | 42501 | 42501 | 1
update created_at    | update public.articles set created_at = now() where id = 1                       | 42501 | 42501 | 42501 | 1
delete one's own     | delete from public.articles where id = 1                                         | 42501 | 1     | 1     | 1
delete another's     | delete from public.articles where id = 2                                         | 42501 | 0     | 1     | 1

public.article_translations                                                                             | anon  | alice | admin | service
select everybody's   | select from public.article_translations                                          | 2     | 2     | 2     | 2
insert of one's own  | insert into public.article_translations (article_id, language, title) values (1, 'fr', 'Alice') | 42501 | 1     | 1 | 1
insert of another's  | insert into public.article_translations (article_id, language, title) values (2, 'fr', 'Bob B') | 42501 | 42501 | 1 | 1
update of one's own  | update public.article_translations set title = 'Five!' where article_id = 1      | 42501 | 1     | 1     | 1
update of another's  | update public.article_translations set title = 'Five!' where article_id = 2      | 42501 | 0     | 1     | 1
update the language  | update public.article_translations set language = 'fr' where article_id = 1      | 42501 | 42501 | 42501 | 1
delete of one's own  | delete from public.article_translations where article_id = 1                     | 42501 | 1     | 1     | 1
delete of another's  | delete from public.article_translations where article_id = 2                     | 42501 | 0     | 1     | 1

public.comments                                                                                         | anon  | alice | admin | service
select everybody's   | select from public.comments                                                      | 2     | 2     | 2     | 2
insert one's own     | insert into public.comments (article_id, content) values (2, 'Yes.')             | 42501 | 1     | 1     | 23502
insert another's     | insert into public.comments (article_id, content, author_id) values (2, 'Y', 2)  | 42501 | 42501 | 42501 | 1
update one's own     | update public.comments set content = 'No.' where author_id = 1                   | 42501 | 1     | 1     | 1
update another's     | update public.comments set content = 'No.' where author_id = 2                   | 42501 | 0     | 1     | 1
update the article   | update public.comments set article_id = 2 where author_id = 1                    | 42501 | 42501 | 42501 | 1
delete one's own     | delete from public.comments where author_id = 1                                  | 42501 | 1     | 1     | 1
delete another's     | delete from public.comments where author_id = 2                                  | 42501 | 0     | 1     | 1

api.versions                                                                                            | anon  | alice | admin | service
select all           | select from api.versions                                                         | 2     | 2     | 2     | 2
insert one           | insert into api.versions (number, status) values (3, 'supported')                | 42501 | 42501 | 42501 | 42501
update one           | update api.versions set status = 'retired' where number = 1                      | 42501 | 42501 | 42501 | 42501
delete one           | delete from api.versions where number = 1                                        | 42501 | 42501 | 42501 | 42501

realtime.messages                                                                                       | anon  | alice | admin | service
select any           | select from realtime.messages                                                    | 0     | 0     | 0     | 1
insert one           | insert into realtime.messages (topic, extension) values ('room', 'broadcast')    | 42501 | 42501 | 42501 | 1
update any           | update realtime.messages set topic = 'x'                                         | 42501 | 42501 | 42501 | 42501
delete any           | delete from realtime.messages                                                    | 42501 | 42501 | 42501 | 42501
`);

/** Bob's article is published, with a comment of Alice; the drafts of Alice and of Dave have comments of Alice, too. */
export const OWNER_SEED = `
  insert into public.users (name, email) values ('Dave', 'dave@example.org');
  insert into public.articles (title, content, author_id) values ('Dave writes', 'About wine.', 4);
  update public.articles set status = 'PUBLISHED' where id = 2;
  insert into public.article_translations (article_id, language, title) values (3, 'de', 'Dave schreibt');
  insert into public.comments (article_id, author_id, content) values (2, 1, 'Yes.'), (3, 1, 'No.');
`;

/** Attempts at the table interface, with USERS_ACCESS=owner. */
export const OWNER_ATTEMPTS = readMatrix(`
public.users                                                                                            | anon  | alice | admin | service
select of authors    | select from public.users                                                         | 2     | 4     | 4     | 4
select addresses     | select email from public.users                                                   | 42501 | 42501 | 4     | 4
select by address    | select id from public.users where email = 'bob@example.org'                      | 42501 | 42501 | 1     | 1
select whole rows    | select * from public.users                                                       | 42501 | 42501 | 4     | 4
select one's own     | select * from public.me()                                                        | LOGIN | 1     | 1     | LOGIN
insert a user        | insert into public.users (name, email) values ('D', 'd@example.org')             | 42501 | 42501 | 1     | 1
update oneself       | update public.users set name = 'A' where id = 1                                  | 0     | 1     | 1     | 1
update another       | update public.users set name = 'B' where id = 2                                  | 0     | 0     | 1     | 1
update an address    | update public.users set email = 'b@example.org' where id = 2                     | 0     | 0     | 1     | 1
delete oneself       | delete from public.users where id = 1                                            | 0     | 1     | 1     | 1
delete another       | delete from public.users where id = 2                                            | 0     | 0     | 1     | 1

public.articles                                                                                         | anon  | alice | admin | service
select readable ones | select from public.articles                                                      | 1     | 2     | 3     | 3
select by function   | select from public.articles_matching('writes')                                   | 1     | 2     | 3     | 3
select by search     | select from public.search('Dave writes')                                         | 0     | 0     | 1     | 1
insert one's own     | insert into public.articles (title, content) values ('Five!', '') returning id   | 42501 | 1     | 1     | 23502
update one's draft   | update public.articles set title = 'Five!' where id = 1                          | 42501 | 1     | 1     | 1
publish one's draft  | update public.articles set status = 'PUBLISHED' where id = 1                     | 42501 | 1     | 1     | 1
update another draft | update public.articles set status = 'PUBLISHED' where id = 3                     | 42501 | 0     | 1     | 1
delete one's draft   | delete from public.articles where id = 1                                         | 42501 | 1     | 1     | 1
delete another draft | delete from public.articles where id = 3                                         | 42501 | 0     | 1     | 1
archive one's own    | update public.articles set status = 'ARCHIVED' where id = 1 returning id         | 42501 | 1     | 1     | 1

public.article_translations                                                                             | anon  | alice | admin | service
select readable ones | select from public.article_translations                                          | 1     | 2     | 3     | 3
insert of a draft    | insert into public.article_translations (article_id, language, title) values (3, 'fr', 'Dave D') | 42501 | 42501 | 1 | 1
update of a draft    | update public.article_translations set title = 'Five!' where article_id = 3      | 42501 | 0     | 1     | 1
delete of a draft    | delete from public.article_translations where article_id = 3                     | 42501 | 0     | 1     | 1

public.comments                                                                                         | anon  | alice | admin | service
select readable ones | select from public.comments                                                      | 1     | 3     | 4     | 4
insert where public  | insert into public.comments (article_id, content) values (2, 'Yes.')             | 42501 | 1     | 1     | 23502
insert on a draft    | insert into public.comments (article_id, content) values (3, 'Yes.')             | 42501 | 42501 | 1     | 23502
insert on nothing    | insert into public.comments (article_id, content) values (99, 'Yes.')            | 42501 | 42501 | 23503 | 23502
insert by function   | select public.create_comment(3, 'Yes.')                                          | LOGIN | NTFND | 1     | LOGIN
update where public  | update public.comments set content = 'No.' where id = 3                          | 42501 | 1     | 1     | 1
update on a draft    | update public.comments set content = 'No.' where id = 4                          | 42501 | 0     | 1     | 1
delete on a draft    | delete from public.comments where id = 4                                         | 42501 | 0     | 1     | 1
`);

function readMatrix(text: string): Attempt[] {
  return text
    .trim()
    .split("\n\n")
    .flatMap((block) => {
      const [heading = "", ...lines] = block.split("\n");
      return lines.map((line) => readAttempt(cells(heading)[0]!, cells(line)));
    });
}

function readAttempt(table: string, [title = "", statement = "", ...outcomes]: string[]): Attempt {
  const [verb = "", ...what] = title.split(" ");
  const [anon, alice, admin, service] = outcomes.map((cell) => (cell.length === 5 ? cell : Number(cell)));
  return { table, verb, what: what.join(" "), statement, anon: anon!, alice: alice!, admin: admin!, service: service! };
}

function cells(line: string): string[] {
  return line.split("|").map((cell) => cell.trim());
}

/** Returns the objects in which a role of a request has privileges, with the verbs that are not tried above. */
export async function untried(owner: pg.ClientBase): Promise<string[]> {
  const { rows } = await owner.query<{ needed: string }>(`
    select distinct verb || ' ' || nspname || '.' || relname as needed
    from pg_class as class
    join pg_namespace on pg_namespace.oid = relnamespace and nspname !~ '^pg_|^information_schema$|^storage$'
    cross join unnest('{anon,authenticated,admin,service_role}'::text[]) as role
    cross join unnest('{select,insert,update,delete}'::text[]) as verb
    where relkind in ('r', 'p', 'v', 'm', 'f') and (
      has_any_column_privilege(role, class.oid, 'select, insert, update')
      or has_table_privilege(role, class.oid, 'delete, truncate')
    )
    order by needed`);
  const tried = new Set(OPEN_ATTEMPTS.map(({ table, verb }) => `${verb} ${table}`));
  return rows.map(({ needed }) => needed).filter((needed) => !tried.has(needed));
}
