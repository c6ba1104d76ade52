-- Run by `npm test`, after the migrations and db/seed.sql. A statement with an expectation is rolled back; one without is a step whose
-- effects stay until the end of the file. Users are named by their id: --! as user 5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b01

--! as owner
insert into auth.users (id, email) values ('5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b01', 'first@example.org');

--! as anon
select * from auth.users;                             --! expect denied

--! as user 5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b01
select where auth.uid() = '5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b01';
--! expect 1 row
select * from auth.users;                             --! expect denied
