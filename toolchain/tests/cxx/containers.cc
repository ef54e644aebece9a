// Containers of every kind, filled, searched, changed and printed.
#include <array>
#include <bitset>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

static uint64_t state = 88172645463325252ull;
static uint64_t draw()
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

template <class C> static void show(const char *name, const C &container)
{
    std::printf("%s:", name);
    for (const auto &value : container)
        std::printf(" %lld", static_cast<long long>(value));
    std::printf("\n");
}

struct Point {
    int x, y;
    bool operator<(const Point &other) const { return std::tie(x, y) < std::tie(other.x, other.y); }
    bool operator==(const Point &other) const { return x == other.x && y == other.y; }
};
template <> struct std::hash<Point> {
    size_t operator()(const Point &p) const { return std::hash<int>()(p.x) * 31 + std::hash<int>()(p.y); }
};

int main()
{
    std::vector<int> vector;
    for (int i = 0; i < 40; i++)
        vector.push_back(static_cast<int>(draw() % 100));
    vector.erase(vector.begin() + 3, vector.begin() + 9);
    vector.insert(vector.begin() + 5, 4, -1);
    vector.resize(20);
    vector.shrink_to_fit();
    show("vector", vector);
    std::vector<bool> bits(70);
    for (size_t i = 0; i < bits.size(); i += 3)
        bits[i].flip();
    show("bits", bits);

    std::deque<long> deque;
    for (int i = 0; i < 1000; i++)
        i % 3 ? deque.push_back(i) : deque.push_front(-i);
    while (deque.size() > 30)
        deque.size() % 2 ? deque.pop_back() : deque.pop_front();
    show("deque", deque);

    std::list<int> list(vector.begin(), vector.end());
    list.sort();
    list.unique();
    list.reverse();
    std::list<int> other{7, 7, 7};
    list.splice(std::next(list.begin(), 2), other);
    list.remove_if([](int n) { return n % 5 == 0; });
    show("list", list);
    std::forward_list<short> forward{5, 3, 8};
    forward.push_front(1);
    forward.insert_after(forward.begin(), 2, 9);
    show("forward_list", forward);

    std::map<std::string, int> map;
    for (const char *word : {"pear", "apple", "fig", "banana", "apple", "cherry", "fig", "apple"})
        map[word]++;
    for (auto &[word, count] : map)
        std::printf("%s=%d ", word.c_str(), count);
    auto lower = map.lower_bound("b"), upper = map.upper_bound("d");
    std::printf("between: %td, erased %zu\n", std::distance(lower, upper), map.erase("pear"));
    std::multimap<int, char> many;
    for (char c = 'a'; c < 'k'; c++)
        many.emplace(c % 3, c);
    auto range = many.equal_range(1);
    for (auto it = range.first; it != range.second; ++it)
        std::putchar(it->second);
    std::putchar('\n');

    std::set<Point> points;
    for (int i = 0; i < 50; i++)
        points.insert({static_cast<int>(draw() % 5), static_cast<int>(draw() % 5)});
    for (const Point &p : points)
        std::printf("(%d,%d)", p.x, p.y);
    std::printf("\n");
    std::multiset<unsigned char> letters;
    for (char c : std::string("mississippi"))
        letters.insert(static_cast<unsigned char>(c));
    show("multiset", letters);

    // The order of hash tables is the library's and the hash function's, which are the same in both builds.
    std::unordered_map<std::string, int> hashed;
    for (int i = 0; i < 200; i++)
        hashed["key" + std::to_string(draw() % 60)] += i;
    std::printf("unordered_map: %zu in %zu, load %.3f:", hashed.size(), hashed.bucket_count(), hashed.load_factor());
    for (const auto &entry : hashed)
        std::printf(" %s:%d", entry.first.c_str(), entry.second);
    std::printf("\n");
    std::unordered_set<Point> set;
    for (int i = 0; i < 30; i++)
        set.insert({i % 7, i % 4});
    set.rehash(100);
    std::printf("unordered_set: %zu %zu %d\n", set.size(), set.bucket_count(), static_cast<int>(set.count({6, 3})));
    std::unordered_multimap<int, int> pairs{{1, 2}, {1, 3}, {2, 4}};
    std::printf("pairs: %zu %zu\n", pairs.count(1), pairs.count(3));

    std::priority_queue<int, std::vector<int>, std::greater<int>> queue(vector.begin(), vector.end());
    std::printf("priority_queue:");
    for (; !queue.empty(); queue.pop())
        std::printf(" %d", queue.top());
    std::stack<int> stack;
    std::queue<int> line;
    for (int i = 0; i < 5; i++)
        stack.push(i), line.push(i);
    std::printf("\nstack and queue: %d %d\n", stack.top(), line.front());

    std::array<std::pair<int, char>, 3> array{{{1, 'x'}, {2, 'y'}, {3, 'z'}}};
    for (auto [number, letter] : array)
        std::printf("%d%c", number, letter);
    std::bitset<77> wide("1011");
    wide <<= 60;
    wide.flip(3);
    std::printf(" %s %zu\n", wide.to_string().c_str(), wide.count());
    std::tuple<int, double, std::string> tuple{1, 2.5, "three"};
    std::printf("%d %.2f %s %zu\n", std::get<0>(tuple), std::get<double>(tuple), std::get<2>(tuple).c_str(),
                std::tuple_size<decltype(tuple)>::value);
}
