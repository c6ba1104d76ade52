-- Run by `npm test`. A statement with an expectation is rolled back; one without is a step whose effects stay until the end of the file.

--! as owner
insert into notes (author_id, words, is_public) values (1, 'of one, public', true), (1, 'of one', false), (2, 'of two', false);

--! as anon
select * from notes;                                  --! expect 1 row
select * from notes where not is_public;              --! expect no rows
insert into notes (words) values ('anonymous');       --! expect denied
update notes set words = '';                          --! expect denied

--! as user 1
select * from notes;                                  --! expect 2 rows
insert into notes (words) values ('another');         --! expect 1 row
insert into notes (words, author_id) values ('of two', 2);
--! expect denied
update notes set is_public = true where author_id = 2;
--! expect no rows
delete from notes;                                    --! expect 2 rows

--! as admin
select * from notes;                                  --! expect 3 rows
insert into notes (words, author_id) values ('of two', 2);
--! expect 1 row
update notes set words = 'changed';                   --! expect 3 rows
delete from notes;                                    --! expect 3 rows

--! as service_role
select * from notes;                                  --! expect 3 rows
