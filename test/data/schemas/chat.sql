-- Of this project: channels with members, whose policies read the claims of the caller's token.

create table public.channels (
  id bigint generated always as identity primary key,
  slug text not null unique,
  is_open boolean not null default false
);

create table public.members (
  channel_id bigint not null references public.channels on delete cascade,
  user_id text not null,
  may_moderate boolean not null default false,
  primary key (channel_id, user_id)
);

create table public.messages (
  id bigint generated always as identity primary key,
  channel_id bigint not null references public.channels on delete cascade,
  user_id text not null,
  reply_to bigint references public.messages,
  body text not null,
  is_hidden boolean not null default false,
  foreign key (channel_id, user_id) references public.members
);
create index on public.messages (channel_id);
create index on public.messages (reply_to);

-- What one may see who looks at nothing but open channels, with the rights of its reader.
create view public.open_messages with (security_invoker) as
  select messages.id, slug, body from public.messages join public.channels on channels.id = channel_id where is_open;

create function public.subject() returns text
language sql stable
return nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub';

create function public.is_member(channel bigint) returns boolean
language sql stable security definer set search_path = ''
begin atomic
  select exists (select from public.members where channel_id = channel and user_id = public.subject());
end;

alter table public.channels enable row level security;
alter table public.members enable row level security;
alter table public.messages enable row level security;

create policy open_to_all on public.channels for select using (is_open);
create policy own on public.channels for select to authenticated using ((select public.is_member(id)));
create policy of_own_channels on public.members for select to authenticated using (public.is_member(channel_id));
create policy open_to_all on public.messages for select
  using (exists (select from public.channels where channels.id = channel_id and is_open));
create policy of_own_channels on public.messages for select to authenticated using (public.is_member(channel_id));
create policy hidden_from_others on public.messages as restrictive for select
  using (not is_hidden or user_id = (select public.subject()));

insert into public.channels (slug, is_open) values ('lobby', true), ('kitchen', false), ('cellar', false);
insert into public.members (channel_id, user_id, may_moderate) values (1, 'ann', true), (1, 'bob', false), (2, 'ann', true), (3, 'bob', true);
insert into public.messages (channel_id, user_id, reply_to, body, is_hidden) values
  (1, 'ann', null, 'Welcome.', false), (1, 'bob', 1, 'Thanks.', false), (1, 'bob', 1, 'Oops.', true),
  (2, 'ann', null, 'Soup, or salad?', false), (2, 'ann', 4, 'Soup.', true), (3, 'bob', null, 'Cold here.', false);
