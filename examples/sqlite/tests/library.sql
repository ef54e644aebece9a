create table author(id integer primary key, name text not null unique);
create table book(id integer primary key, author integer references author(id), title text, year int, price real);
create index by_year on book(year desc, title);
insert into author(name) values ('Lem'), ('Le Guin'), ('Strugatsky'), ('Čapek');
insert into book(author, title, year, price) values
	(1, 'Solaris', 1961, 9.5), (1, 'The Cyberiad', 1965, 12.25), (2, 'The Dispossessed', 1974, 11),
	(2, 'The Left Hand of Darkness', 1969, 10.99), (3, 'Roadside Picnic', 1972, null), (4, 'R.U.R.', 1920, 5);
select name, count(*), sum(price), avg(year), group_concat(title, '; ') from book join author on author.id = author group by name order by name;
select title, rank() over (order by price desc), lag(title) over (order by year) from book order by year;
with recursive count(n) as (select 1 union all select n + 1 from count where n < 20000)
	insert into book(author, title, year, price) select 1 + n % 4, 'Volume ' || hex(n * 2654435761 % 4294967296), 1900 + n % 100, n / 7.0 from count;
select count(*), sum(price), min(title), max(title), total(year) from book;
select year, count(*) from book where title like 'Volume A%' group by year having count(*) > 12 order by 2 desc, 1 limit 5;
explain query plan select title from book where year = 1961 order by title;
update book set price = round(price * 1.1, 2) where year between 1960 and 1975;
select round(sum(price), 3) from book;
begin; delete from book where id > 6; select count(*) from book; rollback; select count(*) from book;
savepoint s; delete from author where name = 'Lem'; rollback to s; release s;
create virtual table page using fts5(body);
insert into page select title || ' of ' || year from book where id < 3000;
select count(*), min(rowid) from page where page match 'volume AND 1961';
create virtual table box using rtree(id, x0, x1, y0, y1);
insert into box select id, id % 97, id % 97 + 2, id % 89, id % 89 + 3 from book where id < 2000;
select count(*), sum(id) from box where x0 > 10 and x1 < 20 and y0 > 5 and y1 < 40;
select json_extract('{"a":[1,2,{"b":"c"}]}', '$.a[2].b'), json_group_array(year) from (select distinct year from book order by year limit 5);
select printf('%.17g|%e|%d|%q', 0.1, 1e300 * 10, 9223372036854775807, 'it''s'), typeof(9223372036854775807 + 1), 1e308 * 10, 5 / 2, 5 % -3;
select sqrt(2), sin(1), pow(2, 0.5), log(10), exp(1), pi();
select strftime('%Y-%m-%d %H:%M:%S', 951782400, 'unixepoch', '+1 day'), julianday('2000-01-01'), date('2024-01-31', '+1 month');
select upper('straße'), length('Čapek'), unicode('Č'), hex('Č'), instr('abc', 'c'), quote(x'00ff'), substr('abcdef', -3, 2);
create trigger t after insert on author begin update author set name = upper(new.name) where id = new.id; end;
insert into author(name) values ('bulgakov') returning id, name;
select * from author order by id;
vacuum;
pragma integrity_check;
analyze;
select tbl, idx, stat from sqlite_stat1 where tbl in ('book', 'author') order by 1, 2;
