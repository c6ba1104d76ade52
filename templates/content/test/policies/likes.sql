-- Run by `npm test`. A statement with an expectation is rolled back; one without is a step whose effects stay until the end of the file.

--! as owner
select auth.register('Ada', 'ada@example.org', null, null, null, null);
select auth.register('Ben', 'ben@example.org', null, null, null, null);
insert into articles (title, content, status, author_id)
  select 'First light', 'It works.', 'PUBLISHED', id from users where email = 'ada@example.org';
insert into likes (article_id, user_id) select articles.id, author_id from articles;

--! as anon
select * from likes;                                                  --! expect 1 row
insert into likes (article_id) select id from articles;               --! expect denied
update articles set title = 'Changed';                                --! expect denied

--! as user ben@example.org
insert into likes (article_id) select id from articles;               --! expect 1 row
insert into likes (article_id, user_id) select id, author_id from articles;
--! expect denied
delete from likes;                                                    --! expect no rows
update articles set title = 'Changed';                                --! expect no rows

--! as user ada@example.org
insert into likes (article_id) select id from articles;               --! expect error 23505
delete from likes;                                                    --! expect 1 row
