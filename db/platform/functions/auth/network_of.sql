create or replace function auth.network_of(address inet) returns inet
language sql immutable parallel safe
return network(set_masklen(address, case family(address) when 4 then 32 else 64 end));

comment on function auth.network_of is 'The network that counts as one client: an IPv4 address, or an IPv6 address''s /64.';
