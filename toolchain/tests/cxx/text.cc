// Strings, numbers, streams, algorithms, random numbers, regular expressions.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

static std::vector<int> numbers(unsigned seed, size_t n)
{
    std::mt19937 engine(seed);
    std::vector<int> v(n);
    std::generate(v.begin(), v.end(), [&] { return static_cast<int>(engine() % 1000); });
    return v;
}

int main()
{
    std::string s = "the quick brown fox";
    s.insert(4, "very ").replace(s.find("brown"), 5, "red").append(3, '!');
    std::cout << s << ' ' << s.size() << ' ' << s.rfind('e') << ' ' << s.substr(9, 5) << ' ' << (s < "them") << '\n';
    std::string long_one;
    for (int i = 0; i < 100; i++)
        long_one += std::to_string(i * i) + ",";
    std::cout << long_one.length() << ' ' << std::hash<std::string>()(long_one) << '\n';
    std::string_view view = s;
    view.remove_prefix(4);
    std::cout << view.substr(0, 4) << '|' << view.find_first_of("aeiou") << '|' << std::stoi("-123abc") << '|' << std::stod("6.25e2") << '\n';
    std::wstring wide = L"wide";
    std::cout << wide.size() << ' ' << (wide + L"r" > L"wider") << '\n';

    for (double x : {0.1, 1e100, -2.5e-7, 123456789.125, 3.0}) {
        char buffer[64];
        auto end = std::to_chars(buffer, buffer + sizeof buffer, x);
        double back = 0;
        std::from_chars(buffer, end.ptr, back);
        std::cout << std::string_view(buffer, static_cast<size_t>(end.ptr - buffer)) << ' ' << (back == x) << ' ' << std::scientific
                  << std::setprecision(3) << x << ' ' << std::fixed << std::sqrt(std::fabs(x) > 1e50 ? 2 : std::fabs(x)) << ' '
                  << std::defaultfloat << std::setprecision(10) << x << '\n';
    }
    int parsed = 0;
    std::string_view digits = "7fffzz";
    auto result = std::from_chars(digits.data(), digits.data() + digits.size(), parsed, 16);
    std::cout << parsed << ' ' << result.ptr - digits.data() << ' ' << std::hex << std::showbase << 255 << std::dec << ' ' << std::setw(8)
              << std::setfill('*') << 42 << ' ' << std::left << std::setw(6) << true << std::boolalpha << true << '\n';

    std::istringstream in("12 apples 3.5 pears\nlast line");
    int count;
    std::string word, line;
    double weight;
    in >> count >> word >> weight;
    std::getline(in, line);
    std::cout << count << word << weight << '[' << line << "]";
    std::getline(in, line);
    std::cout << line << ' ' << in.eof() << '\n';
    std::ostringstream out;
    std::copy_n(numbers(1, 5).begin(), 5, std::ostream_iterator<int>(out, ";"));
    std::cout << out.str() << std::endl;

    auto v = numbers(42, 200);
    std::sort(v.begin(), v.end(), [](int a, int b) { return a % 100 != b % 100 ? a % 100 < b % 100 : a < b; });
    std::copy(v.begin(), v.begin() + 12, std::ostream_iterator<int>(std::cout, " "));
    std::stable_sort(v.begin(), v.end(), [](int a, int b) { return a / 100 < b / 100; });
    std::copy(v.end() - 12, v.end(), std::ostream_iterator<int>(std::cout, " "));
    std::nth_element(v.begin(), v.begin() + 100, v.end());
    std::cout << v[100] << ' ' << std::accumulate(v.begin(), v.end(), 0L) << ' ' << *std::max_element(v.begin(), v.end()) << '\n';
    std::make_heap(v.begin(), v.end());
    std::pop_heap(v.begin(), v.end());
    auto middle = std::partition(v.begin(), v.end(), [](int x) { return x % 2; });
    std::cout << middle - v.begin() << ' ' << v.back() << ' ' << std::count_if(v.begin(), v.end(), [](int x) { return x > 500; }) << '\n';
    std::vector<int> small{1, 2, 3, 4};
    int permutations = 0;
    while (std::next_permutation(small.begin(), small.end()))
        permutations += small[0] * small[3];
    std::rotate(small.begin(), small.begin() + 1, small.end());
    std::partial_sum(small.begin(), small.end(), small.begin());
    std::cout << permutations << ' ' << small[0] << small[1] << small[2] << small[3] << ' ' << std::gcd(84, 36) << ' '
              << std::inner_product(v.begin(), v.begin() + 50, v.begin() + 50, 0) << '\n';

    std::mt19937_64 engine(7);
    std::uniform_int_distribution<int> die(1, 6);
    std::normal_distribution<double> normal(10, 2);
    std::cout << engine() << ' ' << die(engine) << die(engine) << die(engine) << ' ' << std::setprecision(12) << normal(engine) << '\n';
    std::shuffle(v.begin(), v.end(), engine);
    std::cout << v[0] << ' ' << v[99] << '\n';

    std::regex expression("([a-z]+)-([0-9]+)");
    std::string text = "ab-12, cd-345; x-y";
    for (std::sregex_iterator it(text.begin(), text.end(), expression), none; it != none; ++it)
        std::cout << (*it)[1] << '=' << (*it)[2] << ' ';
    std::cout << std::regex_replace(text, expression, "$2:$1") << '\n';

    using namespace std::chrono;
    auto length = hours(2) + minutes(3) + seconds(4);
    std::cout << duration_cast<milliseconds>(length).count() << ' ' << length.count() % 60 << '\n';
    int a, b;
    while (std::cin >> a >> b)
        std::cout << a * b << ' ';
    std::cout << std::cin.eof() << std::endl;
    std::cerr << "nothing\n";
}
