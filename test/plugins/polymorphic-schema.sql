-- What PostGraphile makes interfaces and references of.
grant usage on schema public to anon, authenticated, service_role;

create table public.items (id int primary key, kind text not null, title text, pages int, seconds int);
comment on table public.items is e'@interface mode:single type:kind\n@type book name:Book attributes:pages\n@type song name:Song attributes:seconds';

create table public.places (id int primary key, kind text not null, name text);
create table public.cities (id int primary key references public.places, mayor text);
create table public.lakes (id int primary key references public.places, depth int);
comment on table public.places is e'@interface mode:relational type:kind\n@type city references:cities\n@type lake references:lakes';

create table public.countries (id int primary key, name text);
create table public.regions (id int primary key, country_id int not null references public.countries);
create table public.towns (id int primary key, region_id int not null references public.regions);
comment on table public.towns is e'@ref country via:(region_id)->regions(id);(country_id)->countries(id) singular';

grant select on all tables in schema public to authenticated;
